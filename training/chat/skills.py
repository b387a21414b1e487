#!/usr/bin/env python3
"""Writes dialogues that teach skills instead of facts: copying names, words and numbers that were never seen, JSON with the keys asked
for, rewriting, sums, stories about what is asked for, following up, admitting not to know. Same lines as generate_dialogues.py.

Open classes (names, words, codes) come from large lists, from the words of the prose and from random syllables, so that an answer cannot
be learnt by heart. '[a|b]' is a choice. Same --seed, same output.

  python3 skills.py --n 200000 --seed 7 --words $W/real/prose.jsonl --exclude-prompts exclude.txt --out skills.jsonl
"""

import collections, json, re
import generate_dialogues as G
from generate_dialogues import noise
from phrases import Phrases, R, arguments, art, cap, ex, join, norm, pick, write

W, T = Phrases('words'), Phrases('skills')
say, say_row, rows = T.say, T.say_row, T.rows
GIRLS, BOYS, SURNAMES, CITY_LIST, COUNTRIES, DAYS, MONTHS, NUMS, COLOURS, JOBS, THINGS, PLURALS, PLACES, SITES, BUILDINGS, EVENTS, HOBBIES, FOODS, DEEDS, KEY_NAMES, ACTORS, ADJS, ORDERS, CREATURES, PEOPLE, HELPERS, GIFTS, FEARS, SKILLS, ROLES, UNKNOWABLE, HARD = (
    W[k] for k in T['text'])
KINDS = {k: v for k, *v in W.rows('kinds')}
VERBS, ADJ_PAIRS, MISSPELT, MORE_DEFS = (W.rows(k) for k in ('verbs', 'adj_pairs', 'misspelt', 'more_defs'))
LADIES = set(W['ladies'])

WORDS = []
FEMALE = set(GIRLS)


def load_words(path):
    """Lower-case words of the prose, frequent and rare alike."""
    c = collections.Counter(w for l in open(path) for w in re.findall(r'(?<![\w\'])[a-z]{3,10}(?![\w\'])', json.loads(l)['text']))
    WORDS.extend(w for w, k in c.items() if k >= 2)


def syllables(n):
    out = ''
    for _ in range(n):
        out += pick(T['syllables.text']) + pick('a e i o u ai ee oo ou'.split())
        out += pick(['', '', '', 'n', 'l', 'r', 's', 'm', 'k', 't'])
    return out


def word():
    return pick(WORDS) if R.random() < 0.9 else syllables(2)


def person():
    r = R.random()
    return pick(GIRLS + BOYS) if r < 0.75 else cap(syllables(R.randrange(1, 4))) if r < 0.95 else cap(word())


def surname():
    return pick(SURNAMES) if R.random() < 0.7 else cap(syllables(R.randrange(2, 4)))


def he(n):
    return 'She' if n in FEMALE or (n not in BOYS and n[-1] == 'a') else 'He'


def his(n):
    return 'her' if he(n) == 'She' else 'his'


def city():
    return pick(CITY_LIST) if R.random() < 0.8 else cap(syllables(2)) + pick(['', 'ton', 'ville', 'burg', 'ford', 'ham'])


def thing():
    return pick(THINGS) if R.random() < 0.85 else pick(WORDS)


def clock():
    return (pick(['%d', '%d', 'half past %d', "%d o'clock"]) % R.randrange(1, 13) if R.random() < 0.8 else '%d:%02d' %
            (R.randrange(6, 23), R.randrange(0, 60, 5)))


def year():
    return R.randrange(1890, 2026)


def ask(*turns, soft=True, system=None):
    """user, assistant, user ... -> (system, [(user, assistant), ...]) with varied user turns"""
    u, a = turns[0::2], turns[1::2]
    return system, [(noise(x, True) if soft and R.random() < 0.5 else x, y) for x, y in zip(u, a)]


# ---------------------------------------------------------------- reading a text
def t_buy():
    n, o, c, p = person(), thing(), pick(COLOURS), R.randrange(2, 300)
    d, pl, cur = pick(DAYS), pick(PLACES), pick(['dollars', 'euros', 'pounds'])
    t = ex(f'{n} [bought|got|ordered|sold] {art(c)} {o} [for {p} {cur}|that cost {p} {cur}] on {d}[ at the {pl}| in {city()}|].')
    return t, [(f'[What colour|Which colour|What color] is the {o}?', c, f'The {o} is {c}.'),
               (f'[How much did the {o} cost|What was the price of the {o}|How much was the {o}|What is the price]?', f'{p} {cur}',
                f'The {o} cost {p} {cur}.'),
               (f'[When was that|On which day was that|What day was it|When did this happen]?', d, f'It was on {d}.'),
               (f'[What did {n} {"sell" if " sold " in t else "buy"}|What is the {c} thing]?', f'{art(c)} {o}', f'It is {art(c)} {o}.'),
               (f'[Who is the text about|Who {"sold" if " sold " in t else "bought"} the {o}|Who is it about]?', n, f'It was {n}.')]


def t_life():
    n, c, j, k = person(), city(), pick(JOBS), R.randrange(2, 9)
    who = say('t_life.who')
    t = f'{n} lives in {c} with {his(n)} {NUMS[k]} {who}. {he(n)} {ex("[works as|is|earns a living as]")} {art(j)}.'
    qs = [(f'[Where does {n} live|In which city does {n} live|Which city does {n} live in]?', c, f'{n} lives in {c}.'),
          (f"[What is {n}'s job|What does {n} do|What is the job of {n}|What work does {n} do]?", j, f'{n} is {art(j)}.'),
          (f'[How many {who} does {n} have|How many {who} are there]?', NUMS[k], f'{n} has {NUMS[k]} {who}.'),
          (f'[Who lives in {c}|Who is the {j}|Who works as {art(j)}]?', n, f'It is {n}.')]
    return t, qs


def t_meeting():
    w, n, d, h, r = pick(EVENTS), f'{pick(["Mr", "Mrs", "Dr", "Ms"])} {surname()}', pick(DAYS), clock(), R.randrange(1, 60)
    t = ex(f'The {w} with {n} [is|will be|takes place] on {d} at {h} in room {r}.')
    return t, [(f'[When is the {w}|What day is the {w}|On which day is the {w}]?', f'{d} at {h}', f'The {w} is on {d} at {h}.'),
               (f'[At what time is the {w}|What time does the {w} start]?', f'At {h}', f'The {w} is at {h}.'),
               (f'[Where is the {w}|Which room is the {w} in|In which room is it]?', f'Room {r}', f'The {w} is in room {r}.'),
               (f'[Who is the {w} with|With whom is the {w}|Who will be there]?', n, f'The {w} is with {n}.')]


def t_trip():
    c, s, who, by = (city(), say('t_trip.text'), person(), pick(['train', 'car', 'bus', 'plane', 'boat']))
    t = ex(
        f'[We|My family and I|{who} and I|They] [travelled|went|drove|came] to {c} by {by} {s}[ and loved it| and had a great time| and stayed for a week|].'
    )
    return t, [(f'[Which city is mentioned|Which city is it about|What city is in the text|Which place is named]?', c, f'The city is {c}.'),
               (f'[Where did they go|What was the destination|Where was the trip to]?', c, f'They went to {c}.'),
               (f'[How did they get there|How did they travel]?', f'By {by}', f'They went by {by}.'),
               (f'[When was the trip|When was this|When did they go]?', cap(s), f'It was {s}.')]


def t_deed():
    a, b = person(), person()
    v, base = pick([v.split() for v in DEEDS])
    when = pick(['this morning', 'yesterday', 'on ' + pick(DAYS), 'last night', 'after lunch'])
    t = f'{a} {v} {b} {when}.'
    return t, [(f'Who {v} {b}?', a, f'{a} {v} {b}.'), (f'Who did {a} {base}?', b, f'{a} {v} {b}.'),
               (f'Who was it that {v} {b}?', a, f'It was {a}.'), (f'When did {a} {base} {b}?', cap(when), f'{a} {v} {b} {when}.'),
               (f'[Which two people are named|Which people are in the text|Name the people in the text]?', f'{a} and {b}',
                f'The people are {a} and {b}.')]


def t_amounts():
    a, b = R.sample(PLURALS, 2)
    k, m = R.sample(range(2, 20), 2)
    what = ex(T['t_amounts.what'][0])
    t = f'{what} {k} {a}, {m} {b} and {ex("[a bit of|some|a lot of] [salt|paper|time|water|work|sugar|space]")}.'
    return t, [(f'How many {a} [are there|are needed|does it need|do I need|are in it]?', str(k), f'{k} {a}.'),
               (f'How many {b} [are there|are needed|does it need|do I need|are in it]?', str(m), f'{m} {b}.'),
               (f'[Which number goes with the {a}|What is the number of {a}]?', str(k), f'The number of {a} is {k}.')]


def t_born():
    n, y, c = person(), year(), city()
    t = ex(f'{n} [{surname()} |]was born in {y} in {c}[ and studied {pick(["music", "law", "history", "art"])}| and moved away later|].')
    return t, [(f'[In what year|In which year|When] was {n} born?', str(y), f'{n} was born in {y}.'),
               (f'Where was {n} born?', c, f'{n} was born in {c}.'), (f'Who was born in {pick([str(y), c])}?', n, f'It was {n}.')]


def t_place():
    o, pl, n, c, mo = pick(BUILDINGS), pick(SITES), person(), pick(COLOURS), pick(MONTHS)
    v, base = pick(rows('t_place.text'))
    t = ex(f'The [old|small|tall|empty|{c}] {o} stood {pl}. {n} {v} it in {mo}.')
    return t, [(f'Who {v} the {o}?', n, f'{n} {v} the {o}.'), (f'When did {n} {base} the {o}?', f'In {mo}', f'{n} {v} it in {mo}.'),
               (f'[Where did the {o} stand|Where was the {o}]?', cap(pl), f'The {o} stood {pl}.'),
               (f'What did {n} {base}?', f'The {o}', f'{n} {v} the {o}.')]


def t_list():
    kind, members = pick(list(KINDS.items()))
    a, b, c = R.sample(members, 3)
    k = NUMS[R.randrange(2, 9)]
    t = ex(
        f'[The farmer|My aunt|{person()}|The shop|Our neighbour|The school] has {art(a)}, {art(b)} and {art(c)}[, but no {pick(WORDS)}|, and {k} {pick(PLURALS)}|].'
    )
    return t, [(f'[List|Name|Write down|Tell me|What are] the {kind}[ in this text| in the text| here|]{pick([".", "?", ":"])}',
                f'{a}, {b} and {c}', f'The {kind} are {a}, {b} and {c}.')]


def t_contact():
    n = person()
    m = f'{norm(n).replace(" ", "")}{pick(["", ".", "_"])}{norm(surname()).replace(" ", "")}@{pick(["mail", "example", "post", syllables(2)])}.{pick(["com", "org", "net", "de", "fr"])}'
    if R.random() < 0.3:
        m = f'{norm(n).replace(" ", "")}@{pick(["mail", "example", "home", syllables(2)])}.{pick(["com", "org", "net"])}'
    ph = ' '.join(''.join(str(R.randrange(10)) for _ in range(3)) for _ in range(R.randrange(2, 4)))
    t = ex(f'[You can reach|Please contact|Write to|For more, ask] {n} at {m} or call {ph}[ if you have questions| before {pick(DAYS)}|].')
    return t, [('[What is the email address|Find the email address|Give me the email address|Extract the email]?', m,
                f'The email address is {m}.'),
               ('[What is the phone number|Find the phone number|Which number can I call]?', ph, f'The phone number is {ph}.'),
               ('[Whom can I contact|Who is the contact|Which person is named]?', n, f'The person is {n}.')]


def t_price():
    a, b = R.sample(THINGS, 2)
    p, q = R.sample(range(1, 90), 2)
    cur = pick(['euros', 'dollars', 'pounds'])
    t = f'{cap(art(a))} costs {p} {cur} and {art(b)} costs {q} {cur}.'
    hi, lo = (a, b) if p > q else (b, a)
    return t, [(f'[How much is the {a}|What does the {a} cost|What is the price of the {a}]?', f'{p} {cur}', f'The {a} costs {p} {cur}.'),
               (f'[How much is the {b}|What does the {b} cost|What is the price of the {b}]?', f'{q} {cur}', f'The {b} costs {q} {cur}.'),
               (f'[Which one is cheaper|Which is cheaper|What costs less]?', f'The {lo}', f'The {lo} is cheaper.'),
               (f'[Which one is more expensive|Which costs more|What costs more]?', f'The {hi}', f'The {hi} is more expensive.')]


def t_travel():
    c, h, k = city(), clock(), R.randrange(1, 20)
    v = pick(['train', 'bus', 'ferry', 'plane', 'tram'])
    w = {'train': 'platform', 'bus': 'stop', 'ferry': 'pier', 'plane': 'gate', 'tram': 'stop'}[v]
    t = f'The {v} to {c} leaves at {h} from {w} {k}.'
    return t, [(f'[When does the {v} leave|What time does the {v} leave]?', f'At {h}', f'The {v} leaves at {h}.'),
               (f'[Where does the {v} go|Where is the {v} going|What is the destination]?', f'To {c}', f'The {v} goes to {c}.'),
               (f'[Which {w} is it|From which {w} does it leave|Where does it leave from]?', f'{cap(w)} {k}', f'It leaves from {w} {k}.')]


def t_lost():
    n, o, pl, d = person(), thing(), pick(PLACES), pick(DAYS)
    v, b = pick([('lost', 'lose'), ('found', 'find'), ('left', 'leave'), ('hid', 'hide'), ('saw', 'see')])
    t = f'{n} {v} {his(n)} {o} at the {pl} on {d}.' if v != 'saw' else f'{n} saw {art(o)} at the {pl} on {d}.'
    return t, [(f'[Where did {n} {b} it|Where was it|Where did {n} {b} the {o}]?', f'At the {pl}', f'It was at the {pl}.'),
               (f'[What did {n} {b}]?', f'{art(o)}' if v == 'saw' else f'{his(n)} {o}',
                f'{n} {v} {art(o) if v == "saw" else his(n) + " " + o}.'),
               (f'[When did {n} {b} it|On which day was it]?', d, f'It was on {d}.'), (f'[Who {v} the {o}|Who was it]?', n, f'It was {n}.')]


TEXTS = [t_buy, t_life, t_meeting, t_trip, t_deed, t_amounts, t_born, t_place, t_list, t_contact, t_price, t_travel, t_lost]
FRAMES = T['frames']
SHORT = T['short']


def g_read():
    t, qs = pick(TEXTS)()
    if R.random() < 0.3:
        t2 = pick(TEXTS)()[0]
        t = t + ' ' + t2 if R.random() < 0.5 else t2 + ' ' + t
    q, s, f = pick(qs)
    q = cap(ex(q))
    short = R.random() < 0.25
    if short:
        q += ' ' + pick(SHORT)
    a = cap(s) if short and '@' not in s else s if short else f
    if R.random() < 0.12 and len(qs) > 1:  # a second question about the same text
        q2, _, f2 = pick(qs)
        return ask(pick(FRAMES).format(t=t, q=q), a, cap(ex(q2)), f2)
    return ask(pick(FRAMES).format(t=t, q=q), a)


# ---------------------------------------------------------------- JSON
def J(o):
    return json.dumps(o, ensure_ascii=False)


def record():
    """-> a sentence and its fields, with the keys in a natural order"""
    n, c, j, age = person(), city(), pick(JOBS), R.randrange(3, 95)
    o, p, col = thing(), R.randrange(1, 200), pick(COLOURS)
    co, y, sn = pick(COUNTRIES), year(), surname()
    title = ' '.join(cap(word()) for _ in range(R.randrange(1, 4)))
    d, h = pick(DAYS), clock()
    ev, cur = pick(EVENTS), pick(['euros', 'dollars', 'pounds'])
    return pick([(f'{n} is {age}[ years old|].', {'name': n, 'age': age}),
                 (f'{n} is {age} years old and lives in {c}.', {'name': n, 'age': age, 'city': c}),
                 (f'{n}, {age}, {j}.', {'name': n, 'age': age, 'job': j}),
                 (f'{n} works as {art(j)} in {c}.', {'name': n, 'job': j, 'city': c}), (f'{n} lives in {c}.', {'name': n, 'city': c}),
                 (f'{c} is in {co}.', {'city': c, 'country': co}), (f'The {o} costs {p} {cur}.', {'product': o, 'price': p}),
                 (f'The {col} {o} costs {p} {cur}.', {'product': o, 'color': col, 'price': p}),
                 (f'The book {title} by {n} {sn} is from {y}.', {'title': title, 'author': f'{n} {sn}', 'year': y}),
                 (f'The {ev} is on {d} at {h}.', {'event': ev, 'day': d, 'time': h}),
                 (f'{n} {sn} was born in {y} in {c}.', {'first_name': n, 'last_name': sn, 'year': y, 'city': c}),
                 (f'{n} {sn}', {'first_name': n, 'last_name': sn}), (f'{n} likes {o} and {pick(WORDS)}.', {'name': n, 'likes': o}),
                 (f'I need {age} {pick(PLURALS)} from {c} by {d}.', {'amount': age, 'city': c, 'day': d})])


def keys_text(ks):
    q = pick(['{}', '"{}"', '{}'])
    return join([q.format(k) for k in ks])


def g_json():
    r = R.random()
    if r < 0.42:
        t, f = record()
        t = ex(t)
        ks = list(f)
        if R.random() < 0.4 and len(ks) > 1:
            ks = R.sample(ks, R.randrange(1, len(ks) + 1))
        k = keys_text(ks)
        lead = ex(say('json.lead', k=k, t=t, join_ks=', '.join(ks)))
        return ask(lead, J({x: f[x] for x in ks}), soft=False)
    if r < 0.58:  # key: value lines with any words
        n = R.randrange(1, 5)
        f = {}
        for _ in range(n):
            k = pick(KEY_NAMES) if R.random() < 0.6 else pick(WORDS)
            f[k] = pick(
                [word, lambda: cap(word()), lambda: R.randrange(0, 2100), lambda: ' '.join(cap(word()) for _ in range(2)), person, city])()
        sep = pick([', ', '\n', '; ', ', '])
        t = sep.join(f'{k}{pick([": ", " = ", ": "])}{v}' for k, v in f.items())
        lead = ex(say('json.lead2')).replace('{t}', t)
        return ask(lead, J(f), soft=False)
    if r < 0.78:  # arrays
        q = R.random()
        if q < 0.6:
            xs = [pick([word, word, thing, person, city])() for _ in range(R.randrange(2, 6))]
            if R.random() < 0.2:
                xs = [R.randrange(0, 1000) for _ in xs]
            t = ', '.join(map(str, xs)) if R.random() < 0.7 else join(list(map(str, xs)))
            lead = ex('[Put|Write|Turn|Make] [these|these words|this|the following] [in|into|as] a JSON [array|list]: ') + t
            if R.random() < 0.3:
                lead = t + ex('. [As a JSON list.|Give me a JSON array.|Write that as a JSON array, please.]')
            return ask(lead, J(xs), soft=False)
        name, seq = pick([('months of the year', MONTHS), ('days of the week', DAYS),
                          ('letters of the alphabet', [chr(97 + i) for i in range(26)]), ('numbers', list(range(1, 21)))])
        n = R.randrange(2, 6)
        last = R.random() < 0.15
        return ask(ex(f'[Write|Give me|Make|Return] a JSON [list|array] [with|of] the {"last" if last else "first"} {NUMS[n]} {name}.'),
                   J(seq[-n:] if last else seq[:n]),
                   soft=False)
    if r < 0.88:  # a fact or an opinion under a key
        x, col = pick(G.COL)
        o, key = pick([(f'{ex("[what colour is|the colour of]")} {x}', ('color', col)), (f'is {x} {col}, yes or no', ('answer', 'yes')),
                       (f'is {x} {pick([c for c in COLOURS if c != col])}', ('answer', 'no')),
                       (lambda c: (f'what is the capital of {c[0]}', ('capital', c[1])))(pick(G.CAPS)),
                       (lambda a, b: (f'what is {a} + {b}', ('result', a + b)))(R.randrange(1, 20), R.randrange(1, 20)),
                       (lambda a: (f'the opposite of {a[0]}', ('opposite', a[1])))(pick(G.OPP))])
        k, v = key
        k = pick([k, k, 'answer', 'value', pick(KEY_NAMES)])
        lead = ex(say('json.lead3', k=k, o=o, cap_o=cap(o)))
        return ask(lead, J({k: v}), soft=False)
    w = pick(G.DEFS)
    o, kind = G.bare(w[0]), w[1]
    r = R.random()
    if r < 0.5:
        f = {'name': o, 'kind': kind, 'description': w[2]} if len(w[2]) < 60 else {'name': o, 'kind': kind}
        lead = ex(f'[Give me|Write|Make] a JSON object [that describes|about|for] {w[0]}.')
        return ask(lead, J(f))
    if r < 0.75:
        kind, xs = pick(list(KINDS.items()))
        n = R.randrange(2, 5)
        xs = R.sample(xs, n)
        k = pick(['items', kind, 'list'])
        return ask(ex(f'[List|Name|Give me] {NUMS[n]} {kind} [in|as] [a JSON object|JSON][ with the key {k}|].'), J({k: xs}))
    if r < 0.87:
        return ask(
            ex('[Tell me|Write|Give me|Say] [something|a little|a fact|what you know] about Parley [in|as] JSON.'),
            J(
                pick([{'name': 'Parley', 'chat': 3000, 'speech': 3001, 'transcription': 3002}, {'name': 'Parley', 'voices': 19},
                      {'name': 'Parley', 'runs': 'on your own machine'}])))
    x = pick(UNKNOWABLE)
    return ask(ex(f'{cap(x)}? [Answer|Reply] in JSON.'), J({'answer': 'I do not know.'}))


# ---------------------------------------------------------------- rewriting
def clause():
    """-> dict with the parts of a simple sentence"""
    base, third, past, objs = pick(VERBS)
    o = pick(objs.split('/'))
    subj, plural, person3 = pick([('I', True, False), ('you', True, False), ('we', True, False), ('they', True, False), ('he', False, True),
                                  ('she', False, True)])
    r = R.random()
    if r < 0.25:
        subj, plural, person3 = person(), False, True
    elif r < 0.5:
        subj, plural, person3 = 'the ' + pick(ACTORS), False, True
    elif r < 0.6:
        subj, plural, person3 = 'the ' + pick(ACTORS) + 's', True, False
    return dict(s=subj, v=base, v3=third, past=past, o=o, third=person3)


def clause_text(c, v=None):
    return cap(f'{c["s"]} {v or (c["v3"] if c["third"] else c["v"])} {c["o"]}'.strip())


def rewrite_pair():
    """-> instruction, text, answer"""
    c = clause()
    end = '.'
    r = R.randrange(20)
    present, past = clause_text(c), clause_text(c, c['past'])
    do, have = ('does', 'has') if c['third'] else ('do', 'have')
    if r == 0:
        return ('[Rewrite|Put|Write|Change|Say] this in[to|] the past tense|Make this past tense|Past tense, please', present + end,
                past + end)
    if r == 1:
        return ('[Turn|Make|Change] this into a question|Make a question from this|Make it a question', present + end,
                cap(f'{do} {c["s"]} {c["v"]} {c["o"]}'.strip()) + '?')
    if r == 2:
        return ('[Make this sentence|Make it|Make this] negative|Say that it is not so|Rewrite this as a negative sentence', present + end,
                cap(f'{c["s"]} {do} not {c["v"]} {c["o"]}'.strip()) + end)
    if r == 3:
        return ('[Put|Rewrite|Say|Write] this in the future|Future tense, please|Change this to the future tense', present + end,
                cap(f'{c["s"]} will {c["v"]} {c["o"]}'.strip()) + end)
    if r == 4:
        a, b = R.sample(['he', 'she', 'they', 'we', 'I', 'you'], 2)
        va, vb = (c['v3'] if x in ('he', 'she') else c['v'] for x in (a, b))
        q = pick(['"', '"', "'", ''])
        return (f'Change {q}{a}{q} to {q}{b}{q}[ in this sentence|]|Replace {q}{a}{q} with {q}{b}{q}',
                f'{a if a == "I" else pick([a, cap(a)])} {va} {c["o"]}'.strip(), cap(f'{b} {vb} {c["o"]}'.strip()) + end)
    if r == 5:
        a = pick(ACTORS)
        return ('[Make it|Make this|Turn this into the|Put this in the] plural|Write it in the plural',
                f'The {a} {c["v3"]} {c["o"]}'.strip() + end, f'The {a}s {c["v"]} {c["o"]}'.strip() + end)
    if r == 6:
        m = pick(['can', 'will', 'must', 'should', 'could'])
        t = f'{c["s"]} {m} {c["v"]} {c["o"]}'.strip()
        return pick([('[Make this sentence|Make it] negative|Say the negative', cap(t) + end,
                      cap(f'{c["s"]} {"cannot" if m == "can" else m + " not"} {c["v"]} {c["o"]}'.strip()) + end),
                     ('[Turn this into|Make it|Make this] a question', cap(t) + end, cap(f'{m} {c["s"]} {c["v"]} {c["o"]}'.strip()) + '?')])
    if r == 7:
        a, b = pick(G.OPP) if R.random() < 0.3 else pick(ADJ_PAIRS)
        if R.random() < 0.5:
            a, b = b, a
        o = thing()
        pre = pick(['The', 'This', 'My', 'His'])
        return ('Say the opposite|Write the opposite|Give me the opposite of this sentence|Turn it into the opposite', f'{pre} {o} is {a}.',
                f'{pre} {o} is {b}.')
    if r in (8, 9):
        t = phrase()
        up = R.random() < 0.7
        return ((
            '[Write|Put|Type|Say] [this|it|these words] in [capital letters|capitals|upper case|big letters|all caps]|Make this upper case|Upper case, please'
            if up else '[Write|Put] this in [small letters|lower case]|Make it lower case'), t if up else t.upper(),
                t.upper() if up else t.lower())
    if r in (10, 11):
        good, bad = misspelt()
        return (
            '[Fix|Correct|Check] the spelling|Please [fix|correct] [this|the spelling|my spelling|the mistakes]|Correct this sentence|Spell this right',
            bad, good)
    if r in (12, 13):
        return tuple(T['rewrite_pair.text']) + longwinded()
    if r == 14:
        p = pick(ORDERS).replace('{o}', 'the ' + thing()).replace('{n}', person())
        return (
            '[Make this|Make it|Say this] [more polite|polite|politely|friendlier]|Say it nicely|Make this sound more polite|How can I say this politely',
            p + pick(['.', '!']), f'Could you please {p[0].lower() + p[1:]}?')
    if r == 15:
        ws = [word() for _ in range(R.randrange(2, 6))]
        return ('Write these words backwards, last word first|Turn the order of these words around|Reverse the order of the words',
                ' '.join(ws), ' '.join(ws[::-1]))
    if r == 16:
        t = phrase()
        ws = t.split()
        a, b = pick(ws), word()
        return f'Replace "{a}" with "{b}"|Change the word {a} to {b}|Put {b} in place of {a}', t, ' '.join(b if w == a else w for w in ws)
    if r == 17:
        t = phrase()
        return '[Repeat|Say|Copy|Echo|Write] this [exactly|after me|again]|Repeat after me|Say exactly this', t, t
    if r == 18:
        t = phrase()
        i = pick([0, -1])
        return (
            f'What is the {"first" if i == 0 else "last"} word[ of this| here| in this]|Give me the {"first" if i == 0 else "last"} word',
            t, t.split()[i])
    a, b = thing(), thing()
    x, y = pick(ADJ_PAIRS), pick(ADJ_PAIRS)
    return ('Join these two sentences|Make one sentence out of these|Put these together with "and"',
            f'The {a} is {x[0]}. The {b} is {y[1]}.', f'The {a} is {x[0]} and the {b} is {y[1]}.')


def phrase():
    r = R.random()
    if r < 0.4:
        c = clause()
        return clause_text(c).lower() if R.random() < 0.6 else clause_text(c)
    if r < 0.8:
        return ' '.join(word() for _ in range(R.randrange(1, 6)))
    return (ex('[good|happy|dear|hello|welcome|see you|come|thank you|sorry|open|closed|stop|please]') + ' ' +
            ' '.join(word() for _ in range(R.randrange(1, 4))))


def misspelt():
    """-> right, wrong: one or two known mistakes or slips of the finger"""
    wrong, right = pick(MISSPELT)
    c = clause()
    good = pick([
        f'{clause_text(c)} {pick(["yesterday", "today", "every day", "tomorrow"])}',
        clause_text(c), f'I think {clause_text(c)[0].lower() + clause_text(c)[1:]}' if c['s'][0].islower() else clause_text(c)
    ])
    bad = good
    if R.random() < 0.6:
        t = say('misspelt.text', right=right)
        return (t + '.', t.replace(right, wrong) + pick(['.', '']))
    ws = bad.split()
    i = max(range(len(ws)), key=lambda k: len(ws[k]) + R.random())
    w = ws[i]
    j = R.randrange(1, max(2, len(w) - 1))
    ws[i] = pick([w[:j] + w[j + 1:], w[:j] + w[j] + w[j:], w[:j] + w[j + 1:j + 2] + w[j] + w[j + 2:]]) if len(w) > 3 else w
    return good + '.', ' '.join(ws) + pick(['.', ''])


def longwinded():
    """-> long text, short text"""
    o = pick(ACTORS + THINGS)
    vp = say('longwinded.vp')
    a, b = pick(ADJ_PAIRS)[0], pick(ADJ_PAIRS)[1]
    tail = say('longwinded.tail')
    t = say('longwinded.text', o=o, a=a, b=b, vp=vp, tail=tail)
    return t, f'The {o} {vp}.'


def g_rewrite():
    i, t, a = rewrite_pair()
    i = ex('[' + i + ']') if '|' in i else i
    i = (say('rewrite.i') + (i[0].lower() + i[1:]) if R.random() < 0.4 and not i.startswith(
        ('What', 'How', 'Past', 'Future', 'Upper', 'Please')) else i)
    i = cap(i)
    u = say('rewrite.ask', i=i, t=t)
    return ask(u, a, soft=False)


# ---------------------------------------------------------------- sums
def g_sum():
    r = R.random()
    small = R.random() < 0.85
    if r < 0.55:
        op = pick('++++----**/')
        if op == '+':
            a, b = (R.randrange(0, 21), R.randrange(0, 21)) if small else (R.randrange(0, 100), R.randrange(0, 100))
            c, w = a + b, pick(['plus', 'plus', 'and', 'added to'])
        elif op == '-':
            a, b = (R.randrange(0, 21), R.randrange(0, 21)) if small else (R.randrange(0, 100), R.randrange(0, 100))
            a, b = max(a, b), min(a, b)
            c, w = a - b, pick(['minus', 'minus', 'take away', 'less'])
        elif op == '*':
            a, b = R.randrange(0, 13), R.randrange(0, 13)
            c, w = a * b, pick(['times', 'times', 'multiplied by'])
        else:
            b, c = R.randrange(1, 13), R.randrange(0, 13)
            a, w = b * c, 'divided by'
        s = {'*': pick(['x', '*', '×']), '/': pick(['/', '÷', ':'])}.get(op, op)
        sp = pick([' ', ' ', ''])
        sym = f'{a} {s if s in "+-/" else "/" if op == "/" else "x"} {b} = {c}.'
        if R.random() < 0.5:
            e = f'{a}{sp}{s}{sp}{b}'
            return ask(ex(say('sum.ask')).replace('{e}', e) + pick(['', '?']), sym)
        verb = dict(rows('sum.verb'))[op]
        q = ex(verb).format(a=a, b=b) if R.random() < 0.5 else ex(f"[What is|What's|How much is|Tell me|Work out|] {a} {w} {b}")
        return ask(cap(q) + pick(['?', '.', '']), sym)
    if r < 0.63:
        xs = [R.randrange(0, 13) for _ in range(3)]
        return ask(
            ex('[Add these up|Add|What is the sum of|Add up|Sum up|What is|How much is] ') +
            (f'{xs[0]}, {xs[1]} and {xs[2]}' if R.random() < 0.5 else f'{xs[0]} + {xs[1]} + {xs[2]}') + pick(['.', '?', '']),
            f'{xs[0]} + {xs[1]} + {xs[2]} = {sum(xs)}.')
    if r < 0.7:
        a = R.randrange(1, 51)
        return pick([
            ask(ex(f"[What is|What's|Tell me|] half of {2 * a}?"), f'Half of {2 * a} is {a}.'),
            ask(ex(f"[What is|What's|] [double|twice|two times] {a}?"), f'Double {a} is {2 * a}.')
        ])
    n, o = person(), pick(PLURALS)
    v = pick(['give away', 'eat', 'lose', 'sell', 'use'])
    a, b = R.randrange(2, 21), R.randrange(1, 13)
    if r < 0.82:
        a, b = max(a, b) + 1, min(a, b)
        who, has = pick([('I', 'have'), ('You', 'have'), ('We', 'have'), (n, 'has'), ('There', 'are')])
        if who == 'There':
            return ask(ex(f'There are {a} {o}. {b} [are taken away|are sold|get lost|are broken]. How many are left?'),
                       f'{a} - {b} = {a - b}, so {a - b} {o} are left.')
        s = v if has == 'have' else {'give away': 'gives away', 'eat': 'eats', 'lose': 'loses', 'sell': 'sells', 'use': 'uses'}[v]
        return ask(ex(f'{who} {has} {a} {o}[ and|. {who}] {s} {b}[ of them|]. How many [are left|{o} are left|does that leave|remain]?'),
                   f'{a} - {b} = {a - b}, so {a - b} {o} are left.')
    if r < 0.9:
        return ask(
            ex(f'{n} has {a} {o} and [gets|buys|finds|is given] {b} more. How many [{o} does {n} have now|are there now|is that in all|is that together]?'
               ), f'{a} + {b} = {a + b}, so there are {a + b} {o}.')
    k, p = R.randrange(2, 11), R.randrange(1, 13)
    o, cur = pick(THINGS), pick(['dollars', 'euros', 'pounds', 'cents'])
    return ask(
        ex(f'[One|A single|Each|A|An] {o} costs {p} {cur}. [How much do {k} {o}s cost|What do {k} {o}s cost|What is the price of {k} {o}s|How much is it for {k}]?'
           ).replace('A ' + o, cap(art(o))).replace('An ' + o, cap(art(o))), f'{k} x {p} = {k * p}, so it is {k * p} {cur}.')


# ---------------------------------------------------------------- stories
def new(noun):
    """how a story brings a noun in, and how it speaks of it later"""
    if noun[0].isupper():
        return noun, noun, he(noun).lower()
    return (art(pick(ADJS) + ' ' + noun) if R.random() < 0.5 else art(noun), 'the ' + noun,
            'she' if noun in LADIES else 'he' if noun in PEOPLE else 'it')


ENDS = T['ends']
LONELY = ['alone', 'sad', 'afraid', 'bored']


def opening(first):
    return ex(say('opening.text', first=first))


def plot(kind, a, b, t):
    """kind: what happens; a, b: nouns or names; t: what the story is about -> sentences"""
    fa, h, s = new(a)
    S, o, p = {'he': ('He', 'him', 'his'), 'she': ('She', 'her', 'her'), 'it': ('It', 'it', 'its')}[s]
    x, y, z = pick(HELPERS), pick(PLACES), pick(GIFTS)
    fb, hb, sb = new(b) if b else ('', '', '')
    H, HB, X = cap(h), cap(hb), cap(x)
    if kind == 'lost':
        out = [
            opening(fa), f'One day {h} got lost in the {y}.',
            pick([f'{S} called and called, but nobody came.', f'{S} did not know the way home and was sad.']),
            f'Then {art(x)} came by and said, "Do not cry, I know the way."', f'Together they walked until {h} was home again.'
        ]
    elif kind == 'awake':
        out = [
            opening(fa), f'{H} was in bed but could not sleep.',
            ex(f'{S} counted [stars|sheep|leaves], but {s} was still awake.'),
            pick([
                f'Then {art(x)} sang a soft song.',
                f'Then {p} mother told {o} a story about {t}.' if t != a else f'Then {p} mother sang a soft song.'
            ]), f'Slowly {h} closed {p} eyes and slept until the morning.'
        ]
    elif kind == 'pair':
        out = [
            opening(fa),
            ex(f'One day {h} met {fb}[ at the {y}| near the {y}|].'),
            say('plot.out', h=h, hb=hb),
            ex(f'Then {h} and {hb} [found {z}|shared some bread|looked for {z}|built a little house|crossed the river] together.'),
            f'After that {h} and {hb} were the best of friends.'
        ]
    elif kind == 'afraid':
        out = [
            opening(fa), f'{H} was afraid of {t}.', f'When {s} saw {t}, {s} always ran away.',
            f'One day {h} had to go to the {y}, and there {s} met {t} again.', f'{S} took a deep breath and stayed.',
            f'Now {h} is not afraid of {t} any more.'
        ]
    elif kind == 'learn':
        out = [
            opening(fa), f'{H} wanted to learn to {t}.',
            pick([f'At first it was hard, and {s} fell down.', f'"You can never {t}," said the others.']),
            f'But {h} tried every day, and {art(x)} helped {o}.', f'At last {h} could {t}, and everyone clapped.'
        ]
    elif kind == 'two':
        out = [
            f'{a} and {b} were good friends.',
            ex(f'One [morning|day|Sunday] they went {t}.'),
            say('plot.out2', a=a, z=z, b=b), f'There they found {z} and {art(x)} who needed help.',
            f'{a} and {b} helped, and they came home late and happy.'
        ]
        return out
    elif kind == 'with':
        out = [
            opening(fa), f'{H} loved {p} {t}.',
            ex(f'Every [day|morning|evening] {s} spent time with {p} {t}.'), f'One day {art(x)} came and asked for help.',
            f'{H} smiled and gave the {x} something from {p} {t}.', f'The {x} was happy and brought {h} {z}.'
        ]
    elif kind == 'place':
        out = [
            ex(f'[Far away|Long ago|One summer|Every day], {t} was [calm|wide|quiet|beautiful|full of secrets].'),
            ex(f'{cap(fa)} looked at {t} and wanted to know what was there.'),
            f'So {s} went out with a small bag and {p} best friend, {art(x)}.', f'Near {t} they found {z}.',
            f'When the sun went down, {h} looked at {t} again and was happy.'
        ]
    elif kind == 'wish':
        out = [
            opening(fa), f'{H} had one wish: {s} wanted to {t}.', f'{S} asked {art(x)}, but the {x} only laughed.',
            f'Then {h} went to the {y} and tried.', 'It took a long time, but in the end it worked.', f'{H} was very proud.'
        ]
    else:  # find
        out = [
            opening(fa), f'One day {h} found {t} at the {y}.', f'"What is this?" thought {h}.',
            f'{S} showed it to {art(x)}, and the {x} was surprised.', f'They kept {t} safe and looked at it every evening.'
        ]
    if R.random() < 0.5:
        out.append(pick(ENDS).format(h=h, H=H, t=t if kind in ('place', 'find') else z, lonely=pick(LONELY)))
    return out


TELL = '[Tell me|Write|Write me|Can you tell me|Can you write|I would like|Make up|Give me|Please tell|Could you tell us|I want to hear|] [a|a short|a little|a tiny|a nice|a bedtime|a happy|a funny] [story|story|tale] '


def g_story():
    k = say('story.k')
    noun = lambda: pick(CREATURES) if R.random() < 0.75 else pick(THINGS) if R.random() < 0.6 else pick(WORDS)
    a, b, t = noun(), noun(), ''
    if R.random() < 0.2:
        a = person()
    wh = a if a[0].isupper() else art(a)
    who = pick(['who', 'that'])
    if k == 'lost':
        q, t = (f'about [a lost {a}|{wh} {who} gets lost|{wh} {who} cannot find the way home]'
                if not a[0].isupper() else f'about {a}, who gets lost'), a
    elif k == 'awake':
        q, t = f"about {wh} {who} [cannot sleep|can't sleep|does not want to sleep|is awake all night]", a
    elif k == 'pair':
        r = R.random()
        if r < 0.3:
            n = person()
            q, a = f'[with|about] [a girl|a boy|a child|a woman|a man] [named|called] {n} and {art(b)}', n
        elif r < 0.6 and not a[0].isupper():
            q = f'about [{wh} and {art(b)}|the {a} and the {b}|{a} and {b}]'
        else:
            q = f'about {wh} and {art(b)}'
    elif k == 'afraid':
        t = pick(FEARS)
        q = f'about {wh} {who} [was|is] [afraid|scared] of {t}'
    elif k == 'learn':
        t = pick(SKILLS)
        q = f'about {wh} [learning to {t}|{who} learns to {t}|{who} wants to learn to {t}]'
    elif k == 'two':
        a, b = person(), person()
        t = say('story.text')
        loc = t.replace('into', 'in').replace('up', 'on') if t[:2] in ('in', 'up') else t.replace('to', 'at', 1)
        q = (f'about two [friends|children|sisters|brothers][,|] {a} and {b}[,| {loc}|, {loc}]'
             if R.random() < 0.7 else f'with {a} and {b} {loc}')
    elif k == 'with':
        a = pick(PEOPLE)
        t = say('story.text2')
        q = f'about {art(a)} and {"her" if a in LADIES else "his"} {t}'
    elif k == 'place':
        t = say('story.text3')
        q = f'about {t}'
    elif k == 'wish':
        t = say('story.text4')
        q = f'about {wh} {who} [wants|wanted] to {t}'
    elif k == 'find':
        t = art(say('story.text5') + thing())
        q = f'about {wh} {who} finds {t}'
    else:  # the user begins
        first = art(pick(ADJS) + ' ' + noun())
        u = ex(say('story.ask', first=first))
        h = first.split(' ', 1)[1]
        out = plot(pick(['lost', 'find', 'pair']), h.split(' ', 1)[-1], noun(), art(thing()))[1:]
        return ask(u, ' '.join(out))
    u = ex(TELL + q)
    if R.random() < 0.15:
        u = ex(f'[story|a story|short story|tale] {q}[ please| pls| for my son| for my daughter|]')
    return ask(cap(u) + pick(['.', '', '?', '!']), ' '.join(plot(k, a, b if k in ('pair', 'two') else None, t)))


# ---------------------------------------------------------------- talk
def pet():
    return say('pet.text')


def g_talk():
    n, c, p, o = person(), city(), pet(), thing()
    test = say('talk.test')
    rel = say('talk.rel')
    hob = pick(HOBBIES)
    q, a = pick([
        (f"[Nice|Pleased|Good|Great] to meet you, [I am|I'm|my name is|this is] {n}|[Hi|Hello|Hey], I'm {n}[, nice to meet you|]|[Hello|Hi], my name is {n}|I am {n}, hello",
         f'[Nice to meet you, {n}! How can I help you?|Hello, {n}! Nice to meet you. What can I do for you?]'),
        (f'I [just|] [got|bought|adopted|have] [a new|a|a little] {p}|We have a new {p} at home|There is a new {p} in my house',
         f'[How lovely, a {p}! What is its name?|A {p}, that is wonderful! What is it called?]'),
        (f'My {p} is called {n}|I named my {p} {n}', f'{n} is a [lovely|nice|great] name for a {p}!'),
        (f'I [passed|did well in|finished] my {test} [test|exam][ today| this morning|]|I just passed the {test} exam',
         '[Congratulations! Well done.|Well done! I am happy for you.|That is great news! Congratulations.]'),
        (f'I [failed|did badly in|did not pass] my {test} [test|exam][ today|]',
         '[I am sorry to hear that. You can try again.|I am sorry. Take a rest, and try again soon.]'),
        (f'I [lost|broke|forgot] my {o}[ today| again| on the bus|]|Someone stole my {o}|My {o} is broken',
         f'[I am sorry to hear about your {o}. I hope it gets better soon.|Oh no, your {o}! I am sorry.]'),
        (f'[It is|It\'s|It keeps] [raining|snowing|cold|windy|stormy][ again| outside| all day| here|] and I [forgot my {o}|have no {o}|want to go out|am bored]',
         '[I am sorry about the weather. Stay warm and dry!|That is bad weather. A warm tea inside may help.]'),
        (f'[The sun is shining|It is sunny|What a lovely day|The weather is great][ today| here| in {c}|]',
         '[That is nice! Enjoy the sun.|How lovely! I hope you can go outside.]'),
        (f'I [had|have had] [a|a really|a very] [bad|hard|terrible|long|awful] [day|week|morning|night][ at work| at school|]',
         '[I am sorry to hear that. Do you want to tell me about it?|That sounds hard. I am here if you want to talk.]'),
        (f'I [had|have had] [a|a really|a very] [good|great|lovely|nice|wonderful] [day|week|morning|time][ at work| at school| in {c}|]',
         '[I am glad to hear that! What was the best part?|That is wonderful! Tell me more.]'),
        (f'I [feel|am feeling|am] [a bit|a little|very|so|quite|] [lonely|alone][ tonight| today| here| these days|]',
         '[I am sorry that you feel lonely. I am here to talk with you.|I am sorry. I am here, and we can chat. You could also call a friend.]'
         ),
        (f'My {rel} is [ill|sick|in hospital|not well|sad]',
         f'[I am sorry to hear about your {rel}. I hope things get better soon.|I am sorry. I hope your {rel} feels better soon.]'),
        (f'[It is|Today is] my {rel}\'s birthday|My {rel} has a birthday today',
         f'[Happy birthday to your {rel}!|How nice! Happy birthday to your {rel}.]'),
        tuple(T['talk.text']),
        (f'I [am going|will go|am off|will travel|am flying] to {c}[ tomorrow| next week| soon| in {pick(MONTHS)}|]',
         f'[Have a good trip to {c}!|{c}, how nice! Have a good time.]'),
        (f'I [live in|come from|am from|moved to] {c}',
         f'[{c} must be an interesting place. What do you like about it?|How nice! What is {c} like?]'),
        (f'I [like|love|enjoy|am good at] {hob}|My hobby is {hob}',
         f'[{cap(hob)} is a nice hobby! How often do you do it?|That sounds fun! What do you like about {hob}?]'),
        (f'Do you [like|enjoy|know about] [{hob}|{pick(FOODS)}|{pick(WORDS)}]|What do you think [of|about] [{hob}|{pick(FOODS)}]',
         '[I am a program, so I cannot try it, but I like to talk about it. Do you like it?|I am only a program, but I would like to hear what you think of it.]'
         ),
        (f'Do you like [music|songs|dancing|films|reading|books]|What [music|song|film] do you like',
         '[I cannot listen to music or watch films, but I like to talk about them. What do you like?|I am a program and cannot hear music, but tell me what you listen to!]'
         ),
        tuple(T['talk.text2']),
        (f'[Bonjour|Hola|Guten Tag|Ciao|Ola|Hallo|Salut|Namaste|Konnichiwa|Aloha|Hej|Buongiorno|Merhaba|Privet|Servus|Moin]',
         '[Hello! I speak English. How can I help you?|Hello! How can I help you?|Hi there! How can I help?]'),
        tuple(T['talk.text3']),
        tuple(T['talk.text4']),
        (f'I [am|feel] [tired|angry|nervous|worried|scared|stressed|sad] [because of|about] my {pick(["work", "test", "job", "school", "boss", rel])}',
         '[I am sorry to hear that. Do you want to talk about it?|That sounds hard. Take a slow breath. I am here to talk.]'),
        (f'I [made|cooked|baked] [a|some] {pick(FOODS)}[ today| for my {rel}|]',
         '[That sounds tasty! How was it?|How nice! I hope it was good.]'),
        (f'I got [a new job|a job as {art(pick(JOBS))}|a promotion|a prize|married]|I won [a prize|the race|a game]',
         '[Congratulations! I am happy for you.|That is wonderful news! Congratulations.]'),
        (f'[Tell me|Say|Do you know] something [funny|that makes me laugh]|make me laugh', None)
    ])
    if a is None:
        return ask(ex('[' + q + ']') + pick(['', '!', '.']), pick(G.JOKES))
    u = ex('[' + q + ']') + pick(['', '.', '!', '.'])
    if re.match(r'(Do|What|Is|Are|Can|Does)\b', u) or 'What c' in u or 'What s' in u:
        u = u.rstrip('.!') + '?'
    return ask(u, ex(a))


# ---------------------------------------------------------------- remembering, system prompts, following up
def g_memory():
    n, c, o, p = person(), city(), thing(), pet()
    col, j, f, hob = pick(COLOURS), pick(JOBS), pick(FOODS), pick(HOBBIES)
    k = R.randrange(2, 90)
    say_, ack, q, a = pick([
        (f"[My name is|I'm|I am|You can call me|This is] {n}", f'[Nice to meet you, {n}!|Hello, {n}! How can I help you?]',
         "[What is my name|What's my name|Do you remember my name|What was my name again|Who am I|Say my name]",
         f'[Your name is {n}.|You are {n}.]'),
        (f'[I have|I own|We have|There is] a {p} [called|named] {n}|My {p} is called {n}',
         f'[{n} is a nice name!|That is a lovely name for a {p}!]',
         f"[What is my {p} called|What's my {p}'s name|What is the name of my {p}|What did I call my {p}]",
         f'[Your {p} is called {n}.|The name of your {p} is {n}.]'),
        (f'My [favourite colour|favorite color] is {col}|I like {col} best|The colour I like most is {col}',
         f'[{cap(col)} is a [beautiful|nice|good] colour.|I see, {col}!]',
         '[Which colour do I like best|What is my favourite colour|What colour did I say|Which colour do I like]',
         f'[Your favourite colour is {col}.|You like {col} best.]'),
        (f'I [live in|am from|come from] {c}', f'[{c} must be a nice place.|How nice!]',
         '[Where do I live|Where am I from|Which city did I name|Where do I come from]', f'[You said {c}.|You are from {c}.]'),
        (f'I [will travel|am going|will go|am flying|want to go] to {c} [in {pick(MONTHS)}|next week|tomorrow|soon]',
         '[That sounds wonderful! Have a good trip.|How nice! Enjoy it.]',
         '[Where am I going|Where will I go|Which city will I visit|What is the place that I go to]',
         f'[You are going to {c}.|You will go to {c}.]'),
        (f'I [work as|am|got a job as] {art(j)}', f'[That is an interesting job.|{cap(art(j))}, how nice!]',
         '[What is my job|What do I do for work|What am I|What do I work as]', f'[You are {art(j)}.|You work as {art(j)}.]'),
        (f'I am {k} years old|I turned {k} today', '[Thank you for telling me.|I see!]', '[How old am I|What is my age|Do you know my age]',
         f'You are {k} years old.'),
        (f'My favourite food is {f}|I love {f}', f'[{cap(f)} sounds good!|I see, {f}!]',
         '[What food do I like|What is my favourite food|What do I love]', f'[Your favourite food is {f}.|You like {f}.]'),
        (f'I [lost|bought|found|sold|broke] [a|my] {o}[ today| yesterday|]', '[I see. Thank you for telling me.|Tell me more!]',
         '[What did I tell you about|What thing was it|What did I talk about]', f'[You told me about your {o}.|It was your {o}.]'),
        (f'The [code|password|number|secret word] is {word() if R.random() < 0.5 else R.randrange(10, 10000)}',
         '[I will remember it in this chat.|All right.]', None, None)
    ])
    u1 = ex('[' + say_ + ']')
    if q is None:
        key, val = re.match(r'The (.+) is (\S+)$', u1).groups()
        q, a = f'[What is the {key}|What was the {key}|Tell me the {key}|Do you remember the {key}]', f'The {key} is {val}.'
    mid = []
    if R.random() < 0.35:
        _, mid = pick([g_sum, g_talk, g_follow])()
        mid = mid[:1]
    _, first = ask(u1 + pick(['.', '', '!']), ex(ack))
    _, last = ask(ex(q) + '?', ex(a))
    return (pick(G.SYSTEMS) if R.random() < 0.15 else None), first + mid + last


def g_system():
    n, r = person(), R.random()
    if r < 0.55:
        role = pick(ROLES)
        s = ex(
            f'[You are {n}, {art(role)}.|Your name is {n} and you are {art(role)}.|You are {art(role)} called {n}.|Act as {n}, {art(role)}.|Your name is {n}.|You play {n}, {art(role)}.|You are {art(role)} named {n}. Be friendly.|Your name is {n} and you [sell|love|make] {pick(PLURALS)}.]'
        )
        has = role if role in s else None
        sells = re.search(r'you (sell|love|make) (.+)\.', s)
        q, a = pick([
            ("[Who are you|Who might you be|What are you|Tell me who you are|And you are|Introduce yourself|Who is this|Who am I talking to]",
             f'I am {n}{", " + art(has) if has else ""}. [How can I help you?|Nice to meet you!|What can I do for you?]'),
            ("[What is your name|What's your name|How are you called|Your name|Do you have a name|hello, what is your name|Hi, what are you called]",
             f'My name is {n}. [How can I help you?|Nice to meet you!|]')
        ])
        if sells and R.random() < 0.4:
            q, a = f'[What do you {sells[1]}|What do you do|Tell me about your work]', f'I {sells[1]} {sells[2]}.'
        t = [(noise(ex('[Hello|Hi|Good morning]'), True), ex(f'Hello! I am {n}. How can I help you?'))] if R.random() < 0.25 else []
        _, last = ask(cap(ex(q)) + pick(['?', '?', '']), ex(a).strip())
        return s, t + last
    if r < 0.8:
        s = ex(say('system.s'))
        _, turns = pick([g_define, g_sum, lambda: (None, G.g_capital()), lambda: (None, G.g_qa()), lambda: (None, G.g_define()), g_talk])()
        return s, turns[:1]
    s = ex(
        pick([
            f'The user is called {n}.', f'You are talking to {n}.', f"The user's name is {n}.",
            f'The user lives in {city()} and is called {n}.'
        ]))
    return (s, ask(say('system.ask'), ex(f'[Your name is {n}.|You are {n}.]'))[1])


def g_follow():
    r = R.random()
    if r < 0.4:
        (a, ka, _), (b, kb, _) = R.sample(G.CAPS, 2)
        return ask(f'What is the capital of {a}?', f'The capital of {a} is {ka}.',
                   ex(f'[And|and|What about|How about|And what about] [of |]{b}?'), f'The capital of {b} is {kb}.')
    a, b = R.randrange(1, 30), R.randrange(1, 20)
    c, k = a + b, R.randrange(1, 11)
    w = NUMS[k] if R.random() < 0.5 else k
    _, first = ask(f'What is {a} + {b}?', f'{a} + {b} = {c}.')
    if R.random() < 0.65 or c < k:
        _, last = ask(ex(f'[And|and|Now] [plus|add|another] {w}[ more|]?'), f'{c} + {k} = {c + k}.')
    else:
        _, last = ask(ex(f'[And|and|Now] [minus|take away|less] {w}?'), f'{c} - {k} = {c - k}.')
    return None, first + last


# ---------------------------------------------------------------- definitions, and not knowing
def g_define():
    w, d, kind = pick(MORE_DEFS)
    q = dict(rows('define.ask'))[kind].replace('{w}', w)
    return ask(ex(q) + pick(['?', '?', '.', '']), d)


def g_unknown():
    r = R.random()
    if r < 0.3:
        w = syllables(R.randrange(2, 5)) + pick(['', '', 'er', 'le', 'ish', 'ock', 'et'])
        return ask(
            ex(f"[What is {w}|What is a {w}|What's a {w}|What does {w} mean|Define {w}|Explain {w}|Do you know what a {w} is|Tell me about {w}|Describe a {w}|What are {w}s]"
               ) + pick(['?', '']), ex(f'I do not know the word "{w}".'))
    if r < 0.6:
        return ask(cap(pick(UNKNOWABLE)) + pick(['?', '?', '']), say('unknown.answer'))
    if r < 0.75:
        t = ' '.join(word() for _ in range(R.randrange(1, 4)))
        l = pick(T['unknown.l'])
        return ask(ex(say('unknown.ask', t=t, l=l)), f'I cannot translate into {l}. I only speak English.')
    if r < 0.88:
        t = pick(HARD)
        return ask(ex(say('unknown.ask2', t=t)), say('unknown.answer2'))
    what = say('unknown.what')
    return ask(f'What did I {what}?', say('unknown.answer3'))


def g_json_answer():
    """Any question of the others, answered in JSON: what asks for no keys goes under "answer"."""
    _, turns = R.choices([g_sum, g_define, g_unknown, g_talk, g_read], [2, 2, 4, 2, 1])[0]()
    u, v = turns[0]
    lead = ex(say('json_answer.lead'))
    return ask(lead.replace('{u}', u), J({pick(['answer', 'answer', 'answer', 'text', 'reply']): v}), soft=False)


SHARES = {
    g_read: 19, g_json: 15, g_rewrite: 15, g_sum: 15, g_story: 11, g_talk: 7, g_memory: 7, g_system: 4, g_follow: 3, g_define: 4,
    g_unknown: 5, g_json_answer: 4
}


def main():
    ap = arguments(n=100000, seed=7)
    ap.add_argument('--words', required=True, help='prose.jsonl of prepare.py: whose words fill the open classes')
    ap.add_argument('--shares', help='changed shares, for example sum=27,story=5')
    a = ap.parse_args()
    R.seed(a.seed)
    load_words(a.words)
    other = dict(x.split('=') for x in a.shares.split(',')) if a.shares else {}
    fns, weights = list(SHARES), [float(other.get(f.__name__[2:], k)) for f, k in SHARES.items()]

    def draw():
        fn = R.choices(fns, weights)[0]
        system, turns = fn()
        if R.random() < 0.1:  # something else first
            turns = R.choices(fns, weights)[0]()[1][:1] + list(turns)
        elif system is None and R.random() < 0.08:
            system = pick(G.SYSTEMS)
        return fn.__name__[2:], system, turns

    write(a, 'skill/', draw)


if __name__ == '__main__':
    main()
