#!/usr/bin/env python3
"""Writes dialogues that teach skills instead of facts: copying names, words and numbers that were never seen, JSON with the keys asked
for, rewriting, sums, stories about what is asked for, following up, admitting not to know. Same lines as generate_dialogues.py.

Open classes (names, words, codes) come from large lists, from the words of the prose and from random syllables, so that an answer cannot
be learnt by heart. '[a|b]' is a choice. The scenes are sections of data/skills.txt. Same --seed, same output.

  python3 skills.py --n 200000 --seed 7 --words $W/real/prose.jsonl --exclude-prompts exclude.txt --out skills.jsonl
"""

import collections, json, re
import generate_dialogues as G
from generate_dialogues import J, noise
from phrases import Phrases, R, Stage, arguments, art, cap, ex, join, low, norm, pick, write

W, T = Phrases('words'), Phrases('skills')
say = T.say
NUMS, THINGS, PEOPLE = W['nums'], W['things'], W['people']
KINDS = {k: v for k, *v in W.rows('kinds')}
VERBS, ADJ_PAIRS, MISSPELT, MORE_DEFS = (W.rows(k) for k in ('verbs', 'adj_pairs', 'misspelt', 'more_defs'))
WORDS = []


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


def words(lo, hi):
    return ' '.join(word() for _ in range(R.randrange(lo, hi)))


def person():
    r = R.random()
    return pick(W['girls'] + W['boys']) if r < 0.75 else cap(syllables(R.randrange(1, 4))) if r < 0.95 else cap(word())


def surname():
    return pick(W['surnames']) if R.random() < 0.7 else cap(syllables(R.randrange(2, 4)))


def he(n):
    return 'She' if n in W['girls'] or (n not in W['boys'] and n[-1] == 'a') else 'He'


def his(n):
    return 'her' if he(n) == 'She' else 'his'


def city():
    return pick(W['city_list']) if R.random() < 0.8 else cap(syllables(2)) + pick(['', 'ton', 'ville', 'burg', 'ford', 'ham'])


def thing():
    return pick(THINGS) if R.random() < 0.85 else pick(WORDS)


def clock():
    if R.random() < 0.8:
        return pick(['%d', '%d', 'half past %d', "%d o'clock"]) % R.randrange(1, 13)
    return '%d:%02d' % (R.randrange(6, 23), R.randrange(0, 60, 5))


def mail(n):
    """An address of the person n."""
    name = norm(n).replace(' ', '')
    m = name + pick(['', '.', '_']) + norm(surname()).replace(' ', '')
    m += f'@{pick(["mail", "example", "post", syllables(2)])}.{pick(["com", "org", "net", "de", "fr"])}'
    return f'{name}@{pick(["mail", "example", "home", syllables(2)])}.{pick(["com", "org", "net"])}' if R.random() < 0.3 else m


def phone():
    return ' '.join(''.join(str(R.randrange(10)) for _ in range(3)) for _ in range(R.randrange(2, 4)))


def contrast():
    """Two adjectives, one the opposite of the other."""
    a, b = pick(G.OPP) if R.random() < 0.3 else pick(ADJ_PAIRS)
    return (b, a) if R.random() < 0.5 else (a, b)


def order():
    p = pick(W['orders'])
    return p.replace('{o}', 'the ' + thing()).replace('{n}', person())


def clause():
    """The parts of a simple sentence, see "rewriting" in data/skills.txt."""
    base, third, past, objs = pick(VERBS)
    o = pick(objs.split('/'))
    s = pick(['I', 'you', 'we', 'they', 'he', 'she'])
    r = R.random()
    if r < 0.25:
        s = person()
    elif r < 0.5:
        s = 'the ' + pick(W['actors'])
    elif r < 0.6:
        s = 'the ' + pick(W['actors']) + 's'
    single = s in ('he', 'she') or r < 0.5
    return dict(s=s, v=base, v3=third, past=past, vb=third if single else base, do='does' if single else 'do', o=' ' + o if o else '')


def clause_text(c):
    return cap('{s} {vb}{o}'.format(**c))


def phrase():
    r = R.random()
    if r < 0.4:
        c = clause()
        return clause_text(c).lower() if R.random() < 0.6 else clause_text(c)
    if r < 0.8:
        return words(1, 6)
    return ex('[good|happy|dear|hello|welcome|see you|come|thank you|sorry|open|closed|stop|please]') + ' ' + words(1, 4)


def misspelt():
    """-> right, wrong: one or two known mistakes or slips of the finger"""
    wrong, right = pick(MISSPELT)
    c = clause()
    text = clause_text(c)
    day = pick(['yesterday', 'today', 'every day', 'tomorrow'])
    good = pick([f'{text} {day}', text, f'I think {low(text)}' if c['s'][0].islower() else text])
    if R.random() < 0.6:
        t = say('misspelt.text', right=right)
        return t + '.', t.replace(right, wrong) + pick(['.', ''])
    ws = good.split()
    i = max(range(len(ws)), key=lambda k: len(ws[k]) + R.random())
    w = ws[i]
    j = R.randrange(1, max(2, len(w) - 1))
    if len(w) > 3:
        ws[i] = pick([w[:j] + w[j + 1:], w[:j] + w[j] + w[j:], w[:j] + w[j + 1:j + 2] + w[j] + w[j + 2:]])
    return good + '.', ' '.join(ws) + pick(['.', ''])


def kind():
    return pick(list(KINDS.items()))


def place_of(t):
    """'to the zoo' -> 'at the zoo'"""
    return t.replace('into', 'in').replace('up', 'on') if t[:2] in ('in', 'up') else t.replace('to', 'at', 1)


def way_of_pair(a, r):
    return 'about.pair.' + ('girl' if r < 0.3 else 'both' if r < 0.6 and not a[0].isupper() else 'plain')


S = Stage(
    T, {**{k: G.F[k] for k in ('colour_of', 'capitals', 'opposites')}, **W}, {
        'person': person, 'surname': surname, 'city': city, 'thing': thing, 'word': word, 'clock': clock, 'phone': phone, 'mail': mail,
        'order': order, 'contrast': contrast, 'phrase': phrase, 'misspelt': misspelt, 'kind': kind, 'place_of': place_of,
        'way_of_pair': way_of_pair, 'chance': R.random,
        'any_word': lambda: pick(WORDS), 'words': lambda: words(2, 6), 'year': lambda: R.randrange(1890, 2026),
        'title': lambda: ' '.join(cap(word()) for _ in range(R.randrange(1, 4))),
        'secret': lambda: word() if R.random() < 0.5 else R.randrange(10, 10000),
        'larger': lambda a, b: (max(a, b) + 1, min(a, b)),
        'dearer': lambda a, b, p, q: (a, b) if p > q else (b, a),
        'actors_and_things': lambda: pick(W['actors'] + THINGS),
        'verb_of': lambda subject, v, v3: v3 if subject in ('he', 'she') else v,
        'either_case': lambda a: a if a == 'I' else pick([a, cap(a)]),
        'word_of': lambda t: pick(t.split()),
        'word_at': lambda t, which: t.split()[0 if which == 'first' else -1],
        'replaced': lambda t, a, b: ' '.join(b if w == a else w for w in t.split()),
        'article': lambda adj, o: art(adj + o),
    }, {
        'he': he, 'his': his, 'num': lambda k: NUMS[k], 'backwards': lambda t: ' '.join(t.split()[::-1]),
        'hers': lambda noun: 'her' if noun in W['ladies'] else 'his'
    })


def ask(*turns, soft=True, system=None):
    """user, assistant, user ... -> (system, [(user, assistant), ...]) with varied user turns"""
    u, a = turns[0::2], turns[1::2]
    return system, [(noise(x, True) if soft and R.random() < 0.5 else x, y) for x, y in zip(u, a)]


def text():
    """-> a text and [question, short answer, full answer] about it"""
    v, parts = S.play(pick(T['read']))
    return v['t'], [[S.form.vformat(x, (), v) for x in row] for row in parts['ask']]


def g_read():
    t, qs = text()
    if R.random() < 0.3:
        t2 = text()[0]
        t = t + ' ' + t2 if R.random() < 0.5 else t2 + ' ' + t
    q, s, f = pick(qs)
    q = cap(ex(q))
    short = R.random() < 0.25
    if short:
        q += ' ' + pick(T['short'])
    a = cap(s) if short and '@' not in s else s if short else f
    if R.random() < 0.12 and len(qs) > 1:  # a second question about the same text
        q2, _, f2 = pick(qs)
        return ask(pick(T['frames']).format(t=t, q=q), a, cap(ex(q2)), f2)
    return ask(pick(T['frames']).format(t=t, q=q), a)


def record():
    """-> a sentence and its fields, with the keys in a natural order"""
    v, parts = S.play('record')
    t, *fields = pick(parts['record'])
    return S.fill(t, v), {k: S.fill(x, v) for k, x in (f.split('=') for f in fields)}


def json_of_record():
    t, f = record()
    t = ex(t)
    ks = list(f)
    if R.random() < 0.4 and len(ks) > 1:
        ks = R.sample(ks, R.randrange(1, len(ks) + 1))
    q = pick(['{}', '"{}"', '{}'])
    k = join([q.format(k) for k in ks])
    return ask(ex(say('json.lead', k=k, t=t, join_ks=', '.join(ks))), J({x: f[x] for x in ks}), soft=False)


def json_of_lines():
    """'key: value' with any words"""
    f = {}
    for _ in range(R.randrange(1, 5)):
        k = pick(W['key_names']) if R.random() < 0.6 else pick(WORDS)
        f[k] = pick([word, lambda: cap(word()), lambda: R.randrange(0, 2100), lambda: ' '.join(cap(word()) for _ in range(2)), person, city])()
    sep = pick([', ', '\n', '; ', ', '])
    t = sep.join(f'{k}{pick([": ", " = ", ": "])}{v}' for k, v in f.items())
    return ask(ex(say('json.lead2')).replace('{t}', t), J(f), soft=False)


def json_array():
    if R.random() < 0.6:
        xs = [pick([word, word, thing, person, city])() for _ in range(R.randrange(2, 6))]
        if R.random() < 0.2:
            xs = [R.randrange(0, 1000) for _ in xs]
        t = ', '.join(map(str, xs)) if R.random() < 0.7 else join(list(map(str, xs)))
        lead = ex(T['json.array'][0]).replace('{t}', t)
        if R.random() < 0.3:
            lead = ex(T['json.array'][1]).replace('{t}', t)
        return ask(lead, J(xs), soft=False)
    name, seq = pick([('months of the year', W['months']), ('days of the week', W['days']), ('letters of the alphabet', T['alphabet']),
                      ('numbers', list(range(1, 21)))])
    n = R.randrange(2, 6)
    last = R.random() < 0.15
    u = ex(T['json.first'][0].format(which='last' if last else 'first', n=NUMS[n], name=name))
    return ask(u, J(seq[-n:] if last else seq[:n]), soft=False)


def json_of_fact():
    """A fact or an opinion under a key."""
    v, parts = S.play('json.fact')
    o, k, answer = (S.fill(x, v) for x in pick(parts['fact']))
    k = pick([k, k, 'answer', 'value', pick(W['key_names'])])
    return ask(ex(say('json.lead3', k=k, o=o, cap_o=cap(o))), J({k: int(answer) if answer.isdigit() else answer}), soft=False)


def json_of_thing():
    thing_, kind_, description = pick(G.DEFS)
    r = R.random()
    if r < 0.5:
        f = {'name': G.bare(thing_), 'kind': kind_, 'description': description}
        if len(description) >= 60:
            del f['description']
        return ask(ex(T['json.describe'][0].format(thing=thing_)), J(f))
    if r < 0.75:
        kind_, xs = kind()
        n = R.randrange(2, 5)
        xs = R.sample(xs, n)
        k = pick(['items', kind_, 'list'])
        return ask(ex(T['json.kinds'][0].format(n=NUMS[n], kind=kind_, k=k)), J({k: xs}))
    if r < 0.87:
        u = ex(T['json.parley'][0])
        return ask(u, pick(T['parley']))
    return ask(ex(f'{cap(pick(W["unknowable"]))}? [Answer|Reply] in JSON.'), J({'answer': 'I do not know.'}))


def g_json():
    r = R.random()
    for share, make in ((0.42, json_of_record), (0.58, json_of_lines), (0.78, json_array), (0.88, json_of_fact), (1, json_of_thing)):
        if r < share:
            return make()


def g_rewrite():
    c = clause()
    v, parts = S.play(T['rewrite'][R.randrange(20)], **c)
    row = parts['do'][0] if len(parts['do']) == 1 else pick(parts['do'])
    i, t, a = (S.fill(x, v) for x in row)
    i = ex('[' + i + ']') if '|' in i else i
    if R.random() < 0.4 and not i.startswith(('What', 'How', 'Past', 'Future', 'Upper', 'Please')):
        i = say('rewrite.i') + low(i)
    return ask(say('rewrite.ask', i=cap(i), t=t), a, soft=False)


def two(small, op):
    """Operands, the result and its sign in words."""
    if op in '+-':
        a, b = (R.randrange(0, 21), R.randrange(0, 21)) if small else (R.randrange(0, 100), R.randrange(0, 100))
        if op == '+':
            return a, b, a + b, pick(['plus', 'plus', 'and', 'added to'])
        a, b = max(a, b), min(a, b)
        return a, b, a - b, pick(['minus', 'minus', 'take away', 'less'])
    if op == '*':
        a, b = R.randrange(0, 13), R.randrange(0, 13)
        return a, b, a * b, pick(['times', 'times', 'multiplied by'])
    b, c = R.randrange(1, 13), R.randrange(0, 13)
    return b * c, b, c, 'divided by'


def sum_of_two(small):
    op = pick('++++----**/')
    a, b, c, w = two(small, op)
    s = {'*': pick(['x', '*', '×']), '/': pick(['/', '÷', ':'])}.get(op, op)
    sp = pick([' ', ' ', ''])
    sym = f'{a} {s if s in "+-/" else "/" if op == "/" else "x"} {b} = {c}.'
    if R.random() < 0.5:
        return ask(ex(say('sum.ask')).replace('{e}', f'{a}{sp}{s}{sp}{b}') + pick(['', '?']), sym)
    verb = dict(T.rows('sum.verb'))[op]
    q = ex(verb).format(a=a, b=b) if R.random() < 0.5 else ex(f"[What is|What's|How much is|Tell me|Work out|] {a} {w} {b}")
    return ask(cap(q) + pick(['?', '.', '']), sym)


def g_sum():
    r = R.random()
    small = R.random() < 0.85
    if r < 0.55:
        return sum_of_two(small)
    if r < 0.63:
        x, y, z = (R.randrange(0, 13) for _ in range(3))
        lead = ex('[Add these up|Add|What is the sum of|Add up|Sum up|What is|How much is]')
        xs = f'{x}, {y} and {z}' if R.random() < 0.5 else f'{x} + {y} + {z}'
        return ask(lead + xs + pick(['.', '?', '']), f'{x} + {y} + {z} = {x + y + z}.')
    if r < 0.7:
        a = R.randrange(1, 51)
        return pick([
            ask(ex(f"[What is|What's|Tell me|] half of {2 * a}?"), f'Half of {2 * a} is {a}.'),
            ask(ex(f"[What is|What's|] [double|twice|two times] {a}?"), f'Double {a} is {2 * a}.')
        ])
    v, parts = S.play('sum.rest', r=r)
    u, a = (S.form.vformat(x, (), v) for x in parts['ask'][0])
    if v.get('who') == 'There':
        u = S.form.vformat(parts['there'][0][0], (), v)
    article = cap(art(v['o']))
    u = ex(u)
    return ask(u.replace('A ' + v['o'], article).replace('An ' + v['o'], article) if 'cur' in v else u, a)


def new(noun):
    """how a story brings a noun in, and how it speaks of it later"""
    if noun[0].isupper():
        return noun, noun, he(noun).lower()
    first = art(pick(W['adjs']) + ' ' + noun) if R.random() < 0.5 else art(noun)
    return first, 'the ' + noun, 'she' if noun in W['ladies'] else 'he' if noun in PEOPLE else 'it'


def plot(kind, a, b, t):
    """kind: what happens; a, b: nouns or names; t: what the story is about -> sentences"""
    fa, h, s = new(a)
    m, p = {'he': ('him', 'his'), 'she': ('her', 'her'), 'it': ('it', 'its')}[s]
    x, y, z = pick(W['helpers']), pick(W['places']), pick(W['gifts'])
    fb, hb, _ = new(b) if b else ('', '', '')
    v, _ = S.play('plot.' + kind, a=a, b=b, t=t, fa=fa, first=fa, h=h, s=s, m=m, p=p, x=x, y=y, z=z, fb=fb, hb=hb)
    if kind != 'two' and R.random() < 0.5:
        end = pick(T['ends'])
        v['lines'].append(end.format(h=h, H=cap(h), t=t if kind in ('place', 'find') else z, lonely=pick(['alone', 'sad', 'afraid', 'bored'])))
    return v['lines']


def noun():
    return pick(W['creatures']) if R.random() < 0.75 else pick(THINGS) if R.random() < 0.6 else pick(WORDS)


def g_story():
    k = say('story.k')
    a, b = noun(), noun()
    if R.random() < 0.2:
        a = person()
    named = a[0].isupper()
    who = pick(['who', 'that'])
    if k == 'go on':  # the user begins
        first = art(pick(W['adjs']) + ' ' + noun())
        u = ex(say('story.ask', first=first))
        kind = pick(['lost', 'find', 'pair'])
        return ask(u, ' '.join(plot(kind, first.split(' ', 2)[2], noun(), art(thing()))[1:]))
    v, parts = S.play('about.' + k, a=a, b=b, t='', wh=a if named else art(a), who=who)
    q = S.fill(parts['named' if named and 'named' in parts else 'about'][0][0], v)
    u = ex(T['about'][0].replace('{q}', q))
    if R.random() < 0.15:
        u = ex(T['about'][1].replace('{q}', q))
    return ask(cap(u) + pick(['.', '', '?', '!']), ' '.join(plot(k, v['a'], v['b'] if k in ('pair', 'two') else None, v['t'])))


def g_talk():
    v, parts = S.play('talk')
    q, a = (S.fill(x, v) for x in pick(parts['say']))
    if a == '-':
        return ask(ex('[' + q + ']') + pick(['', '!', '.']), pick(G.JOKES))
    u = ex('[' + q + ']') + pick(['', '.', '!', '.'])
    if re.match(r'(Do|What|Is|Are|Can|Does)\b', u) or 'What c' in u or 'What s' in u:
        u = u.rstrip('.!') + '?'
    return ask(u, ex(a))


def g_memory():
    v, parts = S.play('memory')
    said, ack, q, a = (S.fill(x, v) for x in pick(parts['say']))
    u1 = ex('[' + said + ']')
    if q == '-':
        key, val = re.match(r'The (.+) is (\S+)$', u1).groups()
        q, a = f'[What is the {key}|What was the {key}|Tell me the {key}|Do you remember the {key}]', f'The {key} is {val}.'
    mid = pick([g_sum, g_talk, g_follow])()[1][:1] if R.random() < 0.35 else []
    _, first = ask(u1 + pick(['.', '', '!']), ex(ack))
    _, last = ask(ex(q) + '?', ex(a))
    return (pick(G.SYSTEMS) if R.random() < 0.15 else None), first + mid + last


def g_system():
    n, r = person(), R.random()
    if r < 0.55:
        role, many = pick(W['roles']), pick(W['plurals'])
        s = ex('[' + '|'.join(T['system.role']) + ']').format(n=n, role=art(role), many=many)
        has = ', ' + art(role) if role in s else ''
        sells = re.search(r'you (sell|love|make) (.+)\.', s)
        q, a = pick(T.rows('system.who'))
        if sells and R.random() < 0.4:
            q, a = f'[What do you {sells[1]}|What do you do|Tell me about your work]', f'I {sells[1]} {sells[2]}.'
        t = [(noise(ex('[Hello|Hi|Good morning]'), True), f'Hello! I am {n}. How can I help you?')] if R.random() < 0.25 else []
        _, last = ask(cap(ex(q)) + pick(['?', '?', '']), ex(a.format(n=n, has=has)))
        return s, t + last
    if r < 0.8:
        s = ex(say('system.s'))
        _, turns = pick([g_define, g_sum, lambda: (None, G.scene('capital')), lambda: (None, G.g_qa()), lambda: (None, G.g_define()), g_talk])()
        return s, turns[:1]
    c = city()
    s = pick(T['system.user']).format(n=n, c=c)
    return s, ask(say('system.ask'), ex(f'[Your name is {n}.|You are {n}.]'))[1]

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


def g_define():
    w, d, kind = pick(MORE_DEFS)
    q = dict(T.rows('define.ask'))[kind].replace('{w}', w)
    return ask(ex(q) + pick(['?', '?', '.', '']), d)


def g_unknown():
    r = R.random()
    if r < 0.3:
        w = syllables(R.randrange(2, 5)) + pick(['', '', 'er', 'le', 'ish', 'ock', 'et'])
        return ask(ex(T['unknown.word'][0]).replace('{w}', w) + pick(['?', '']), f'I do not know the word "{w}".')
    if r < 0.6:
        return ask(cap(pick(W['unknowable'])) + pick(['?', '?', '']), say('unknown.answer'))
    if r < 0.75:
        t = words(1, 4)
        l = pick(T['unknown.l'])
        return ask(ex(say('unknown.ask', t=t, l=l)), f'I cannot translate into {l}. I only speak English.')
    if r < 0.88:
        t = pick(W['hard'])
        return ask(ex(say('unknown.ask2', t=t)), say('unknown.answer2'))
    what = say('unknown.what')
    return ask(f'What did I {what}?', say('unknown.answer3'))


def g_json_answer():
    """Any question of the others, answered in JSON: what asks for no keys goes under "answer"."""
    _, turns = R.choices([g_sum, g_define, g_unknown, g_talk, g_read], [2, 2, 4, 2, 1])[0]()
    u, v = turns[0]
    lead = ex(say('json_answer.lead'))
    return ask(lead.replace('{u}', u), J({pick(['answer', 'answer', 'answer', 'text', 'reply']): v}), soft=False)


SHARES = {globals()['g_' + k]: float(share) for k, share in T.rows('shares')}


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
