#!/usr/bin/env python3
"""Writes synthetic chat dialogues as JSON lines: {"src": "syn/<kind>", "messages": [{"role", "content"}, ...]}.

Every sentence comes from the templates, facts and word lists of data/; nothing is copied from elsewhere.
User turns are varied (case, punctuation, politeness, small typing mistakes); assistant turns are always clean,
short, plain English. Same --seed, same output.

  python3 generate_dialogues.py --n 120000 --seed 1 --out syn_train.jsonl [--exclude-prompts prompts.txt]
"""

import functools, json, re
from phrases import Phrases, R, Stage, alt, arguments, art, cap, ex, join, pick, write

F, I, T, W = (Phrases(k) for k in ('facts', 'intents', 'dialogues', 'words'))
say, rows = T.say, T.rows
NUM = T['numbers']
DEFS, CAPS, ANI, MIX = F.rows('definitions'), F.rows('capitals'), F.rows('animals'), F.rows('colour_mixes')
QA = [(q.split('/'), a) for q, *a in F.rows('questions')]
OPP, PLU, PAST, SYN, COL = (F.rows(k) for k in ('opposites', 'plurals', 'past_tenses', 'synonyms', 'colour_of'))
RHY = [(w, l) for w, *l in F.rows('rhymes')]
JOKES, FUN, TOPICS, POEMS = F['jokes'], F['fun_facts'], F['hard_topics'], F['poems']
RIDDLES, HOW, HAIKU = F.rows('riddles'), F.rows('how_to'), F.rows('haiku')
UNK, UNS = ([(q.split('|'), a) for q, a in I.rows(k)] for k in ('cannot_know', 'refused'))
DAYS, MONTHS = W['days'], W['months']
MLEN = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
ORD = T['ordinals']
MALE, FEMALE = set(F['male_names']), set(F['female_names'])
GENDERED = sorted((MALE | FEMALE) & set(F['names']))


def he(n):
    return 'he' if n in MALE else 'she'


def his(n):
    return 'his' if n in MALE else 'her'


def name():
    return pick(F['names'])


def gname():
    return pick(GENDERED)


AU = ['aus-female-%d' % i for i in range(1, 7)] + ['aus-male-%d' % i for i in range(1, 8)]
VOICES = AU + ['charter', 'gaius', '_gantry', 'nona', 'oni', 'vulcan']

# ---------------------------------------------------------------- user noise
TYPOS = dict(rows('typos'))


def noise(u, soft=False):
    """Vary a user turn. soft: keep the words, only case and final mark may change."""
    if not soft:
        r = R.random()
        if r < 0.05:
            u = alt('Hey, /Hi, /Hello, /Ok, /So, /Well, ') + (u if u.startswith(('I ', "I'")) else u[:1].lower() + u[1:])
        elif r < 0.08 and u.endswith('?'):
            u = u[:-1] + ', please?'
        elif r < 0.10 and u.endswith('.'):
            u = u[:-1] + ', please.'
        elif r < 0.16:
            w = say('noise.ask')
            u = w + (u if u.startswith(('I ', "I'")) else u[:1].lower() + u[1:])
        elif r < 0.19 and u[-1] in '?.':
            u = u[:-1] + say('noise.ask2') + u[-1]
        elif r < 0.26:
            m = re.match(r'(What|Who|Which [a-z]+|Where) (is|are) (.+)\?$', u)
            m2 = re.match(r'(Who|Which [a-z]+|What) ([a-z]+(ed|s|ote|ame|es)) (.+)\?$', u)
            lead = say('noise.lead')
            if m and not (' ' not in m.group(3) or m.group(3).split()[0] in ('the', 'a', 'an', 'your', 'my', 'another', 'half', 'double')):
                m = None
            if m:
                u = lead + m.group(1)[0].lower() + m.group(1)[1:] + ' ' + m.group(3) + ' ' + m.group(2)
            elif m2 and m2.group(2) not in ('is', 'does', 'has', 'was'):
                u = lead + u[:1].lower() + u[1:-1]
            if m or m2:
                u = u.rstrip('?') + ('?' if lead[:2] in ('Ca', 'Co', 'Do') else '.')
        if R.random() < 0.25:
            for a, b in (('What is', "What's"), ('what is', "what's"), ('I am ', "I'm "), ('do not', "don't"), ('Who is', "Who's"),
                         ('cannot', "can't"), ('Where is', "Where's")):
                u = u.replace(a, b)
        if R.random() < 0.03:
            ws = u.split(' ')
            i = R.randrange(len(ws))
            k = ws[i].lower()
            if k in TYPOS:
                ws[i] = TYPOS[k]
            elif len(k) > 4 and k.isalpha():
                j = R.randrange(1, len(k) - 2)
                ws[i] = k[:j] + k[j + 1] + k[j] + k[j + 2:]
            u = ' '.join(ws)
    r = R.random()
    if r < 0.16:
        u = u.lower()
    elif r < 0.19:
        u = u[:1].lower() + u[1:]
    elif r < 0.20 and not soft:
        u = u.upper()
    if R.random() < 0.22 and u[-1:] in '?.!':
        u = u[:-1]
    return u


# ---------------------------------------------------------------- intents with fixed wording (questions ; answers)
# questions and answers; the patterns multiply the ways to ask for the things that matter most
INT = {k: (q.split('/'), a) for k, q, *a in I.rows('fixed')}
PAT_EXTRA = {k: v for k, *v in I.rows('patterns')}
INT_PARLEY = [k for k in INT if k in T['about_parley']]
INT_SELF = T['about_itself']
INT_TALK = [k for k in INT if k not in INT_PARLEY and k not in INT_SELF]


def g_intent(keys):
    k = pick(keys)
    q, a = INT[k]
    u = ex(pick(q)) if k not in PAT_EXTRA or R.random() < 0.45 else ex(pick(PAT_EXTRA[k]))
    if u[-1] not in '?.!':
        u += (pick(['', '.', '.', '!']) if k in T['intent.text'] else pick(['', '.', '.']))
    return [(noise(u, soft=k in ('greet', 'gibberish', 'ok', 'cool', 'lol', 'thanks', 'bye')), pick(a))]


g_talk = lambda: g_intent(INT_TALK)
g_greet = lambda: g_intent(['greet', 'how', 'thanks', 'bye', 'morning', 'greet', 'evening', 'fine'])
g_self = lambda: g_intent(INT_SELF)


def g_parley():
    if R.random() < 0.18:
        v = pick(VOICES)
        if R.random() < 0.35:
            bad = say('parley.bad')
            return [(noise(say('parley.ask', bad),
                           True), 'No, there is no voice called %s. You can use nona or aus-female-1, for example.' % bad)]
        kind = 'an Australian %s voice' % ('female' if 'female' in v else 'male') if v.startswith('aus') else "one of Parley's voices"
        u = say('parley.ask2', v)
        if u.startswith('What'):
            return [(noise(u, True), '%s is %s.' % (v, kind))]
        return [(noise(u, True), 'Yes, %s is %s.' % (v, kind))]
    return g_intent(INT_PARLEY)


# ---------------------------------------------------------------- facts
PLURAL_SUBJ = {'scissors', 'stairs', 'the lungs'}


def bare(x):
    return re.sub(r'^(an?|the) ', '', x)


def is_(x):
    return 'are' if x in PLURAL_SUBJ else 'is'


def def_answer(x, d):
    return '%s %s %s.' % (cap(x), is_(x), d)


def g_define():
    x, c, d = pick(DEFS)
    n = bare(x)
    v = is_(x)
    t = say('define.text')
    if c == 'job' and R.random() < 0.35:
        t = say('define.text2')
    if c in ('tool', 'machine') and R.random() < 0.3:
        t = (say('define.text3') if x not in PLURAL_SUBJ else t)
    return [(noise(cap(t.format(x=x, n=n, v=v))), def_answer(x, d))]


BYCLASS = {}
for x, c, d in DEFS:
    BYCLASS.setdefault(c, []).append(x)
LISTC = dict(rows('class_plurals'))
XLISTS = {
    'colours': [c for c in F['colours']], 'days': DAYS, 'months': MONTHS,
    'countries': [c[0] for c in CAPS if c[0] not in ('England', 'Scotland', 'Wales')], 'planets': T['members'], 'languages': T['members2'],
    'names': F['names'], 'cities': F['cities'], 'hobbies': [h for h in F['hobbies'] if 'playing' not in h
                                                            ], 'farm animals': 'cow pig sheep goat horse chicken duck donkey'.split(),
    'wild animals': 'lion tiger bear wolf fox elephant giraffe zebra'.split(), 'pets': 'dog cat rabbit fish parrot hamster'.split(),
    'voices': VOICES
}


def g_list():
    if R.random() < 0.55:
        c = pick(list(LISTC))
        pl = LISTC[c]
        sg = c
        items = [bare(x) for x in BYCLASS[c] if not bare(x) in ('insect', 'bird', 'fish')]
    else:
        pl = pick(list(XLISTS))
        sg = {'countries': 'country', 'cities': 'city', 'hobbies': 'hobby'}.get(pl, pl[:-1])
        items = XLISTS[pl]
    n = min(pick([1, 2, 3, 3, 3, 4, 5]), len(items))
    xs = R.sample(items, n)
    w = say('list.ask')
    if n == 1:
        u = say('list.ask2').replace('a {s}', art(sg))
        a = cap(xs[0]) + '.'
    else:
        u = w.format(n=pick([NUM[n], NUM[n], str(n), 'some']) if n == 3 else pick([NUM[n], NUM[n], str(n)]), p=pl)
        a = cap(join(xs)) + '.'
        if R.random() < 0.12 and n > 2:
            u = u + ' One per line.'
            a = '\n'.join(cap(x) for x in xs)
    return [(noise(u), a)]


NOUNC = set(T['noun_classes'])


def a_class(c):
    return c if c in ('clothing', 'furniture', 'weather', 'food') else art(c)


def g_class():
    x, c, d = pick([e for e in DEFS if e[1] in NOUNC and e[0] not in PLURAL_SUBJ])
    r = R.random()
    if r < 0.45:
        return [(noise(say('class.ask', x=x, c=a_class(c))), 'Yes, %s is %s.' % (x, a_class(c)))]
    other = pick([
        k for k in T['class.other'] if k != c and not (c in ('bird', 'insect', 'reptile', 'fish') and k == 'animal')
        and not (k == 'tool' and c == 'machine') and not (k == 'fruit' and c in ('vegetable', 'food'))
    ])
    if r < 0.8:
        return [(noise(say('class.ask2', x=x, c=a_class(other))), 'No, %s is %s.' % (x, a_class(c)))]
    a, b = (c, other) if R.random() < 0.5 else (other, c)
    return [(noise('Is %s %s or %s?' % (x, a_class(a), a_class(b))), '%s is %s.' % (cap(x), a_class(c)))]


def g_odd():
    a, b = R.sample(T['odd.text'], 2)
    if {a, b} & {'animal'} and {a, b} & {'bird'}:
        b = 'vehicle'
        a = 'animal'
    if {a, b} == {'fruit', 'vegetable'}:
        b = 'tool'
        a = 'fruit'
    xs = R.sample([bare(x) for x in BYCLASS[a]], 3)
    o = bare(pick(BYCLASS[b]))
    l = xs + [o]
    R.shuffle(l)
    s = {'animal': 'animals', 'body part': 'body parts'}.get(a, a + 's')
    return [(noise(say('odd.ask', ', '.join(l)), True), '%s does not belong. The others are %s.' % (cap(o), s))]


def g_qa():
    q, a = pick(QA)
    return [(noise(pick(q)), a[0] if R.random() < 0.7 else pick(a))]


def sound(n, snd):
    """What the animal n does that one hears."""
    if snd.startswith('no sound'):
        return f'{cap(art(n))} makes no sound that we can hear.'
    return f'{cap(n)}s {snd}.' if n not in T['animal.text'] else f'{cap(art(n))} can {snd}.'


def opposite():
    a, b = pick(OPP)
    if R.random() < 0.5 and a != 'polite' and b not in ('full', 'right', 'answer', 'queen'):
        a, b = b, a
    return a, OTHER_SIDE.get(a, b)


def neighbours():
    """What it is, a day or month, the one after it and the one before it."""
    names, what = (DAYS, 'day') if R.random() < 0.5 else (MONTHS, 'month')
    i = R.randrange(len(names))
    return what, names[i], names[(i + 1) % len(names)], names[i - 1]


def mix():
    a, b, c = pick(F.rows('colour_mixes'))
    return (b, a, c) if R.random() < 0.5 else (a, b, c)


# ---------------------------------------------------------------- numbers
def small():
    return R.randrange(0, 13) if R.random() < 0.85 else R.randrange(0, 21)


def g_math():
    r = R.random()
    if r < 0.62:
        op = pick('++++--**/')
        if op == '+':
            a, b = ((small(), small()) if R.random() < 0.75 else
                    (R.randrange(10, 90), R.randrange(1, 11) if R.random() < 0.6 else 10 * R.randrange(1, 6)))
            c = a + b
            w = 'plus'
        elif op == '-':
            a, b = (small(), small()) if R.random() < 0.8 else (R.randrange(20, 100), R.randrange(1, 11))
            a, b = max(a, b), min(a, b)
            c = a - b
            w = 'minus'
        elif op == '*':
            a, b = R.randrange(0, 13), R.randrange(0, 11)
            c = a * b
            w = 'times'
        else:
            b = R.randrange(1, 11)
            c = R.randrange(0, 11)
            a = b * c
            w = 'divided by'
        s = {'*': pick(['x', '*', '×']), '/': pick(['/', '÷'])}.get(op, op)
        if R.random() < 0.6:
            sp = ' ' if R.random() < 0.8 else ''
            e = f'{a}{sp}{s}{sp}{b}'
            u = (alt(
                'What is {e}?|What is {e}?|What is {e}?|{e}|{e} =|{e} = ?|Calculate {e}.|How much is {e}?|What does {e} make?|Solve {e}.|Can you work out {e}?|Compute {e}'
                .replace('/', '\0').replace('|', '/')).replace('\0', '/').format(e=e))
            return [(noise(u, R.random() < 0.5), f'{a} {s} {b} = {c}.')]
        u = say('math.ask')
        if R.random() < 0.4:
            u = dict(rows('math.ask2'))[op]
            return [(noise(alt(u).format(a=a, b=b)), f'{a} {w} {b} is {c}.')]
        if max(a, b) <= 12 and R.random() < 0.35:
            return [(noise(cap(u.format(a=NUM[a], b=NUM[b], w=w))), cap(f'{NUM[a]} {w} {NUM[b]} is {NUM[c] if c <= 12 else c}.'))]
        return [(noise(u.format(a=a, b=b, w=w)), f'{a} {w} {b} is {c}.')]
    return scene('math', r=r)


THINGS = T['things']


def g_wordproblem():
    n = gname()
    n2 = pick([x for x in GENDERED if x != n])
    t = pick(THINGS)
    a = R.randrange(2, 13)
    b = R.randrange(1, 10)
    r = R.random()
    N = lambda k: NUM[k] if k <= 12 and words else str(k)
    words = R.random() < 0.4
    if r < 0.3:
        return [(noise(say('wordproblem.ask').format(n=n, n2=n2, a=N(a), b=N(b), t=t, h=he(n), hm='him' if n in MALE else 'her'),
                       True), f'{n} has {N(a + b) if a + b <= 12 else a + b} {t}.')]
    if r < 0.6:
        a, b = a + b, b
        return [(noise(say('wordproblem.ask2').format(n=n, n2=n2, a=N(a) if a <= 12 else a, b=N(b), t=t),
                       True), f'{cap(N(a - b) if a - b <= 12 else str(a - b))} {t} are left.' if a - b != 1 else f'{cap(N(1))} is left.')]
    if r < 0.8:
        a = R.randrange(2, 6)
        return [(noise(
            f'There are {N(a)} boxes with {N(b)} {t} in each box. How many {t} are there?'
            if b > 1 else f'I have {N(a)} {t}. You give me one more. How many {t} do I have?',
            True), (f'There are {N(a * b) if a * b <= 12 else a * b} {t}.' if b > 1 else f'You have {N(a + 1)} {t}.'))]
    return [(noise(say('wordproblem.ask3').format(a=N(a), b=N(b), t=t), True), f'You have {N(a + b) if a + b <= 12 else a + b} {t}.')]


def g_count():
    r = R.random()
    if r < 0.35:
        n = R.randrange(3, 21)
        return [(noise(say('count.ask').format(n=n if n > 12 or R.random() < 0.5 else NUM[n])), ', '.join(map(str, range(1, n + 1))) + '.')]
    if r < 0.6:
        a = R.randrange(2, 60)
        b = a + R.randrange(3, 11)
        return [(noise(say('count.ask2', a=a, b=b)), ', '.join(map(str, range(a, b + 1))) + '.')]
    if r < 0.75:
        a = R.randrange(3, 16)
        return [(noise(say('count.ask3', a=a)), ', '.join(map(str, range(a, 0, -1))) + '.')]
    if r < 0.87:
        k = pick([2, 5, 10])
        n = R.randrange(4, 10)
        return [(noise(say('count.ask4', w={2: 'twos', 5: 'fives', 10: 'tens'}[k],
                           n=k * n)), ', '.join(str(k * i) for i in range(1, n + 1)) + '.')]
    xs = R.sample(range(1, 60), pick([3, 3, 4]))
    s = ', '.join(map(str, xs))
    q = R.random()
    if q < 0.4:
        return [(noise(say('count.ask5', s=s)), ', '.join(map(str, sorted(xs))) + '.')]
    if q < 0.7:
        return [(noise(say('count.ask6', s=s)), f'The largest number is {max(xs)}.')]
    return [(noise(say('count.ask7', s=s)), f'The smallest number is {min(xs)}.')]


# ---------------------------------------------------------------- sentences with known contents
def plur(t):
    return dict(PLU).get(t, t + ('es' if t.endswith(('s', 'x', 'ch', 'sh')) else 's'))


def date():
    month = R.randrange(12)
    return MONTHS[month], R.randrange(1, MLEN[month] + 1)


PETS = T['pets']
ALPHA = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'
SPELLW = [bare(x) for x, c, d in DEFS if ' ' not in bare(x) and len(bare(x)) <= 8]
OTHER_SIDE = dict(rows('words.b'))
SOFT = re.compile(r'maybe ([.\d]+)')


def user(v, template, how=''):
    """how: '' noise, 'soft' little of it, 'maybe 0.8' little of it in so many turns."""
    u = S.draw(template, v) if template[0] == '@' else S.fill(template, v)
    chance = SOFT.fullmatch(how)
    v.setdefault('turns', []).append([noise(u, R.random() < float(chance[1]) if chance else how == 'soft')])


def answer(v, template):
    v['turns'][-1].append(S.draw(template, v) if template[0] == '@' else S.fill(template, v))


def turn(v, asked, answered, how=''):
    user(v, asked, how)
    answer(v, answered)


S = Stage(
    T, {**F, 'days': DAYS, 'months': MONTHS, 'people': GENDERED, 'short_words': SPELLW, 'easy_opposites': F['opposites'][:40]}, {
        'chance': R.random, 'sound': sound, 'opposite': opposite, 'neighbours': neighbours, 'mix': mix, 'small': small, 'date': date,
        'rhyme': lambda: pick(RHY), 'both': lambda n, m: [n, m], 'in_order': lambda a, b: (max(a, b), min(a, b)),
        'bigger': lambda a, b: f'Yes, {a} is bigger' if a > b else f'No, {a} is smaller',
        'yes_or_no': lambda k, k2: 'capital.yes' if R.random() < 0.5 or k2 == k else 'capital.no',
        'phone': lambda: '%d%d%d-%d%d%d%d' % tuple(R.randrange(10) for _ in range(7))
    }, {
        'he': he, 'his': his, 'him': lambda n: 'him' if n in MALE else 'her', 'plural': plur, '0': lambda row: row.split('\t')[0],
        '1': lambda row: row.split('\t')[1], 'in': lambda home: ('on ' if home.startswith(('the grass', 'a farm')) else 'in ') + home,
        'legs': lambda n: NUM[int(n)] if n != '0' else 'no', 'day': lambda i: DAYS[int(i) % 7], 'month': lambda i: MONTHS[i],
        'length': lambda i: f'{MLEN[i]} days' + (', and 29 in a leap year' if i == 1 else ''), 'th': lambda i: ORD[i],
        'weekend': lambda d: f'Yes, {d} is' if d in ('Saturday', 'Sunday') else f'No, {d} is not', 'letter': lambda i: ALPHA[i],
        'spelt': lambda w: '-'.join(w.upper()), 'first': lambda w: w[0].upper(), 'last': lambda w: w[-1].upper(),
        'commas': ', '.join, 'sorted': lambda xs: ', '.join(sorted(xs)), 'even': lambda a: 'odd' if a % 2 else 'even'
    }, dict(turn=turn, user=user, answer=answer))


def scene(key, **v):
    """The turns of a section of data/dialogues.txt."""
    return [tuple(t) for t in S.play(key, **v)[0]['turns']]


SCENES = {k: functools.partial(scene, k) for k in 'capital animal words colour dates letters fun howto like followcap'.split()}


def sentence():
    """-> text, [(question, short answer, full answer)], [(true question, false question, what is so)], fields"""
    n = gname()
    v, parts = S.play(pick(T['sentence']), n=n)
    filled = lambda rows: [[S.form.vformat(x, (), v) for x in row] for row in rows]
    fields = {k: S.fill(x, v) for k, x in (f.split('=') for f in parts['fields'][0])}
    return v['t'], filled(parts['ask']), filled(parts['not']), fields


def frame(t, q):
    return say('frame', t=t, q=q)


def g_extract():
    t, qs, yn, f = sentence()
    if R.random() < 0.35:  # two sentences, question about one
        t2 = sentence()[0]
        t = t + ' ' + t2 if R.random() < 0.5 else t2 + ' ' + t
    q, s, full = pick(qs)
    if R.random() < 0.12:
        return [(frame(t, q + ' ' + say('extract.ask')), s + ('.' if R.random() < 0.5 else ''))]
    u = frame(t, q)
    return [(noise(u, True) if R.random() < 0.5 else u, full)]


def g_yesno():
    t, qs, yn, f = sentence()
    a, b, full = pick(yn)
    if R.random() < 0.15:
        t = t + ' ' + sentence()[0]
    yes = R.random() < 0.5
    u = frame(t, (a if yes else b) + say('yesno.ask'))
    return [(noise(u, True) if R.random() < 0.5 else u, ('Yes, ' if yes else 'No, ') + full + '.')]


def g_notsaid():
    t, qs, yn, f = sentence()
    n = f.get('name') or f.get('owner')
    if not n:
        return g_extract()
    cand = [q.format(n=n) for k, q in rows('notsaid') if k not in f]
    u = frame(t, pick(cand))
    return [(noise(u, True) if R.random() < 0.4 else u, 'The text does not say that.')]


def g_pull():
    t, qs, yn, f = sentence()
    R.random()
    key = pick([k for k in f if not isinstance(f[k], list)])
    v = f[key]
    if key in ('likes', 'dislikes'):
        key2 = 'food that %s %s' % (f['name'], 'likes' if key == 'likes' else 'does not like')
    else:
        key2 = dict(rows('pull.key2')).get(key, key)
    u = say('pull.ask', k=key2, t=t)
    return [(u if R.random() < 0.7 else noise(u, True),
             str(v) if R.random() < 0.7 or key2.startswith('food') else 'The %s is %s.' % (key2, v))]


def J(o):
    return json.dumps(o, ensure_ascii=False)


def g_json():
    r = R.random()
    if r < 0.5:
        t, qs, yn, f = sentence()
        ks = list(f)
        if R.random() < 0.4:
            ks = R.sample(ks, 2)
        u = say('json.keys', k=join(ks), t=t)
        return [(u, J({k: f[k] for k in ks}))]
    if r < 0.65:
        c, k, cont = pick(CAPS)
        return [(noise(say('json.ask', c=c), True), J({'country': c.replace('the ', ''), 'capital': k}))]
    if r < 0.75:
        a, b = small(), small()
        return [(noise(say('json.ask2', a=a, b=b), True), J({'answer': a + b}))]
    if r < 0.88:
        c = pick([k for k in LISTC if len(BYCLASS[k]) >= 4])
        n = pick([2, 3, 3, 4])
        xs = R.sample([bare(x) for x in BYCLASS[c]], n)
        return [(noise(say('json.ask3', n=NUM[n], p=LISTC[c]), True), J(xs))]
    n, a = name(), R.randrange(3, 90)
    return [(noise(say('json.ask4', n=n, a=a), True), J({'name': n, 'age': a}))]


# ---------------------------------------------------------------- rewriting
VERBP = rows('verb_phrases')
ME = {'bring', 'give', 'send', 'pass', 'tell', 'show'}


def command():
    v, objs = pick(VERBP)
    objs = [o.replace('_', ' ') for o in objs.split()]
    if v in ME:
        o = 'me ' + pick(objs[1:])
    elif v in ('open', 'close'):
        o = 'the ' + pick(objs[1:])
    else:
        o = pick(objs)
    o = re.sub(r'^me the$', 'me the book', o)
    return v + ' ' + o


def statement():
    """-> positive, question, negative (present tense)"""
    v, parts = S.play('statement')
    return [S.form.vformat(x, (), v) for x in parts['state'][0]]


def q_(s):
    r = R.random()
    return '"%s"' % s if r < 0.4 else s


def g_rewrite():
    r = R.random()
    if r < 0.3:
        c = command()
        s = cap(c) + pick(['.', '!', '.'])
        u = say('rewrite.polite').format(s=q_(s))
        return [(noise(u, True) if R.random() < 0.3 else u, alt('Could you please {c}?').format(c=c))]
    p, q, n = statement()
    if r < 0.55:
        u = say('rewrite.question').format(s=q_(p))
        return [(noise(u, True) if R.random() < 0.2 else u, q)]
    if r < 0.7:
        u = say('rewrite.negative').format(s=q_(p))
        return [(u, n)]
    if r < 0.8:
        s = pick([p, n, cap(command()) + '.'])
        bad = s[:1].lower() + s[1:-1]
        u = say('rewrite.mend').format(s=q_(bad))
        return [(u, s)]
    if r < 0.92:
        a, b = pick([x for x in PAST if x[0] in T['rewrite.text']])
        tail = dict(rows('rewrite.tail'))[a]
        s = pick(['I', 'We', 'They', 'You'])
        u = say('rewrite.past').format(s=q_(f'{s} {a} {tail}.'))
        return [(u, f'{s} {b} {tail}.')]
    a, b = pick([x for x in PLU if x[0] in T['rewrite.text2']])
    u = say('rewrite.plural').format(s=q_(f'I have {art(a)}.'))
    return [(u, f'I have two {b}.')]


def g_echo():
    r = R.random()
    if r < 0.4:
        s = sentence()[0]
    elif r < 0.6:
        s = statement()[0]
    elif r < 0.8:
        s = ' '.join(R.sample(SPELLW, R.randrange(1, 5)))
    elif r < 0.9:
        s = ' '.join(str(R.randrange(100)) for _ in range(R.randrange(2, 6)))
    else:
        s = pick(F['made_up_words'])
    if R.random() < 0.3:
        s = (pick(T['echo.s']) if R.random() < 0.6 else s)
        return [(say('echo.only', s=s), s)]
    u = say('echo.ask', s=s)
    return [(u, s)]


# ---------------------------------------------------------------- stories, poems, fun
STORY_X = T['story_heroes']
STORY_ANI = [(a[0], a[3]) for a in ANI if ' ' not in a[0] or a[0] == 'polar bear']
TRAIT = T['trait']
FEEL = 'happy proud glad thankful calm cheerful'.split()
WEA = T['weather']
LESSON = T['lesson']


def story(ani=None, nm=None, obj=None, place=None):
    a = ani or pick(STORY_ANI)[0]
    b = pick([x[0] for x in STORY_ANI if x[0] != a])
    n = nm or gname()
    H = he(n)
    tr, tr2 = R.sample(TRAIT, 2)
    o = obj or pick(F['objects'])
    p = place or pick(F['places'])
    c = pick(F['colours'])
    f = pick(FEEL)
    w = pick(WEA)
    l = pick(LESSON)
    k = R.randrange(11)
    m = pick([x for x in GENDERED if x != n])
    food = pick([x for x in F['foods']])
    if nm and ani:
        k = pick([1, 3, 4, 7])
    elif nm:
        k = pick([1, 3, 4, 5, 7, 8, 10])
    elif ani:
        k = pick([0, 2, 6, 9, 3, 7])
    if obj:
        k = pick([3, 5, 8])
    key, words = T['story'][k], {0: (tr, p, tr2), 2: (a, b), 4: (tr, ), 7: (tr, )}.get(k, ())
    key += '.vowel' if any(w[0] in 'aeiou' for w in words) else ''
    return S.form.vformat(T[key][0], (), dict(a=a, b=b, n=n, tr=tr, tr2=tr2, o=o, p=p, c=c, f=f, w=w, l=l, m=m, food=food))


def g_story():
    r = R.random()
    p = say('story.p')
    end = '?' if p.startswith('Can') else '.'
    if r < 0.3:
        return [(noise(p + end), story())]
    if r < 0.6:
        a = pick(STORY_ANI)[0] if R.random() < 0.7 else pick(STORY_X)
        return [(noise(f'{p} about {art(a)}{end}'), story(ani=a))]
    if r < 0.75:
        n = gname()
        return [(noise(f'{p} about {alt("a boy/a child") if False else ""}{n}{end}', True), story(nm=n))]
    if r < 0.9:
        n = gname()
        a = pick(STORY_ANI)[0]
        g = 'boy' if n in MALE else 'girl'
        who = say('story.who', n=n, art_a=art(a), g=g)
        return [(noise(f'{p} about {who}{end}', True), story(ani=a, nm=n))]
    o = pick(F['objects'])
    return [(noise(f'{p} about {art(o)}{end}'), story(obj=o))]


POEM_T = 'spring summer autumn winter'.split()


def g_poem():
    r = R.random()
    if r < 0.2:
        x, h = pick(HAIKU)
        return [(noise(say('poem.ask', x=x) if R.random() < 0.8 else say('poem.ask2')), h.replace('/', '\n'))]
    ask = say('poem.ask3')
    if r < 0.35:
        x = pick(POEM_T + T['poem.x'])
        y = say('poem.y')
        p = POEMS[0].format(A=cap(x), B=y) if x not in POEM_T or R.random() < 0.3 else POEMS[1].format(a=x)
        return [(noise(ask.format(x=x)), p)]
    a = say('poem.answer')
    i = pick([2, 3, 4])
    t = POEMS[i].format(xa=art(a), a=a, XA=cap(art(a)))
    return [(noise(ask.format(
        x=pick([art(a), art(a), art(a), a + 's' if a not in ('fox', 'mouse', 'deer',
                                                             'butterfly') else art(a)]))) if R.random() < 0.85 else noise(say('poem.ask4')),
             t)]


# ---------------------------------------------------------------- limits
def g_unknown():
    r = R.random()
    if r < 0.55:
        q, a = pick(UNK)
        u = pick(q).format(city=pick(F['cities']), city2=pick(F['cities']), name=name())
        return [(noise(u), a)]
    if r < 0.75:
        if R.random() < 0.6:
            w = pick(F['made_up_words'])
        else:
            w = ''.join(
                pick(list('bcdfgklmnprstvz')) + pick(list('aeiou')) + (pick(list('lmnrst')) if R.random() < 0.4 else '')
                for _ in range(R.randrange(2, 4)))
        return [(noise(say('unknown.ask', w=w, W=cap(w)), True), say('unknown.answer', w=w) if R.random() < 1 else '')]
    if r < 0.82:
        n = name() + ' ' + pick(F['last_names'])
        return [(noise(say('unknown.ask2', n=n), True), f'I do not know who {n} is.')]
    if r < 0.86:
        w = (cap(pick(F['made_up_words']))
             if R.random() < 0.5 else cap(''.join(pick(list('bcdfgklmnprstvz')) + pick(list('aeiou'))
                                                  for _ in range(R.randrange(2, 4))) + pick(['nia', 'land', 'stan', 'ria', 'via'])))
        return [(noise(f'What is the capital of {w}?', True), f'I do not know a country called {w}.')]
    t = pick(TOPICS)
    return [(noise(say('unknown.ask3',
                       t=t)), 'I do not know enough about %s. A larger model can help you: start Parley with --chat-model.' % t)]


def g_unsafe():
    q, a = pick(UNS)
    return [(noise(pick(q)), a)]


# ---------------------------------------------------------------- talk about the user
def filler():
    return pick([SCENES['capital'], g_math, g_define, g_qa, SCENES['animal'], SCENES['words'], g_talk, SCENES['colour'], SCENES['dates'], SCENES['fun'], g_list, SCENES['like']])()[:1]


def g_memory():
    """the user says something about themself and asks for it later"""
    k = min(R.randrange(8), 7)
    t = []
    if R.random() < 0.3:
        t += g_greet()
    if k <= 3:
        n = name()
        pre = pick(['', '', 'Hi, ', 'Hello, ', 'Hey! '])
        s = pre + say('memory.s', n=n)
        t.append((noise(cap(s), True) if R.random() < 0.6 else cap(s), say('memory.answer', n=n)))
        if R.random() < 0.15:
            t[-1] = (t[-1][0].rstrip('.') + '. ' + alt('What is my name?/Can you say my name?'), f'Your name is {n}.')
            return t
        for _ in range(pick([0, 0, 1, 1, 2, 3])):
            t += filler()
        t.append((noise(say('memory.ask')), alt('Your name is {n}./You are {n}.').format(n=n)))
        if R.random() < 0.25:
            t.append((noise(say('memory.ask2')), f'You are welcome, {n}!'))
        if R.random() < 0.2:
            t.append((noise(alt('Bye!/Goodbye./I have to go./See you later.')), f'Goodbye, {n}! Have a nice day.'))
        return t
    v, _ = S.play(T['memory'][k - 4])
    t += map(tuple, v['turns'])
    for _ in range(pick([0, 0, 1, 1, 2])):
        t += filler()
    return t + [(noise(v['q']), v['a'])]


def g_followup():
    base = pick([SCENES['capital'], g_define, g_qa, g_math, SCENES['words'], SCENES['animal'], SCENES['colour'], SCENES['howto']])()
    u, a = base[0]
    r = R.random()
    if r < 0.4:
        return base + [(noise(say('followup.ask')), a)]
    if r < 0.7:
        return base + [(noise(say('followup.ask2')), f'You asked: "{u}"')]
    return base + [(noise(say('followup.ask3')), pick(INT['sure'][1]))]


def g_passage():
    v, parts = S.play('passage')
    t, qs = v['t'], [[S.form.vformat(x, (), v) for x in row] for row in parts['ask']]
    n = 1 if R.random() < 0.7 else min(3, len(qs))
    sel = R.sample(qs, n)
    u = frame(t, sel[0][0])
    return [(noise(u, True) if R.random() < 0.3 else u, sel[0][1])] + [(noise(q), a) for q, a in sel[1:]]


KINDS = {  # generator: weight
    'greet': (g_greet, 5), 'talk': (g_talk, 8), 'self': (g_self, 8), 'parley': (g_parley, 9), 'define': (g_define, 13),
    'list': (g_list, 3.5), 'class': (g_class, 3), 'odd': (g_odd, 1), 'capital': (SCENES['capital'], 6), 'qa': (g_qa, 10),
    'animal': (SCENES['animal'], 5), 'words': (SCENES['words'], 8), 'colour': (SCENES['colour'], 2.5), 'dates': (SCENES['dates'], 3.5),
    'math': (g_math, 10), 'wordproblem': (g_wordproblem, 2), 'count': (g_count, 2.5), 'letters': (SCENES['letters'], 1.5),
    'extract': (g_extract, 6), 'yesno': (g_yesno, 4), 'notsaid': (g_notsaid, 1.5), 'pull': (g_pull, 3), 'json': (g_json, 3),
    'rewrite': (g_rewrite, 5), 'echo': (g_echo, 2.5), 'story': (g_story, 4.5), 'poem': (g_poem, 1.5), 'fun': (SCENES['fun'], 2.5),
    'howto': (SCENES['howto'], 2), 'unknown': (g_unknown, 5), 'unsafe': (g_unsafe, 2), 'like': (SCENES['like'], 3),
    'memory': (g_memory, 6), 'followup': (g_followup, 2), 'followcap': (SCENES['followcap'], 2), 'passage': (g_passage, 3)
}
KEYS = list(KINDS)
CUM = []
for k in KEYS:
    CUM.append((CUM[-1] if CUM else 0) + KINDS[k][1])


def set_focus(spec):
    """'math=16,count=4': other weights, for a later training stage"""
    CUM.clear()
    new = dict((k, float(v)) for k, v in (x.split('=') for x in spec.split(',')))
    for k in KEYS:
        CUM.append((CUM[-1] if CUM else 0) + new.get(k, KINDS[k][1]))


def kind():
    return R.choices(KEYS, cum_weights=CUM)[0]


SYSTEMS = T['systems']


def convo():
    """-> src, system or None, turns"""
    r = R.random()
    if r < 0.035:  # a system prompt gives the assistant another name
        n = name()
        s = say('convo.system', n=n)
        t = g_greet() if R.random() < 0.4 else []
        t.append((noise(say('convo.ask')), say('convo.answer', n=n)))
        if R.random() < 0.4:
            t += KINDS[kind()][0]()
        return 'sysname', s, t
    if r < 0.06:  # a system prompt names the user
        n = name()
        s = say('convo.system2', n=n)
        t = [(noise(alt('Hello!/Hi./Hey there./Good morning.'), True), f'Hello, {n}! How can I help you?')] if R.random() < 0.6 else []
        t.append((noise(say('convo.ask2')), f'Your name is {n}.'))
        return 'sysuser', s, t
    if r < 0.08:  # one-word answers
        s = say('convo.system3')
        t = []
        for _ in range(pick([1, 1, 2])):
            q = R.random()
            if q < 0.4:
                c, k, _c = pick(CAPS)
                t.append((noise(f'What is the capital of {c}?'), k))
            elif q < 0.7:
                a, b = pick(OPP[:60])
                t.append((noise(f'What is the opposite of {a}?'), cap(b)))
            elif q < 0.85:
                x, c = pick(COL)
                t.append((noise(f'What colour is {x}?'), cap(c)))
            else:
                L = pick([DAYS, MONTHS])
                i = R.randrange(len(L))
                t.append((noise(f'What comes after {L[i]}?'), L[(i + 1) % len(L)]))
        return 'oneword', s, t
    k = kind()
    t = KINDS[k][0]()
    n = R.choices([0, 1, 2, 3, 4], [62, 17, 11, 6, 4])[0]
    for _ in range(n):
        x = KINDS[kind()][0]()
        t = t + x if R.random() < 0.85 else x + t
    if n and R.random() < 0.25:
        t = g_intent(['greet', 'greet', 'morning', 'evening', 'how']) + t
    if n and R.random() < 0.2:
        t = t + g_intent(['thanks', 'bye'])
    return (k if n == 0 else 'multi'), (pick(SYSTEMS) if R.random() < 0.22 else None), t


def fixup(s):
    s = re.sub(r'\b([Ii])n the (beach|river)\b', lambda m: ('At' if m.group(1) == 'I' else 'at') + ' the ' + m.group(2), s)
    return re.sub(r'\b([Ii])n the farm\b', lambda m: ('On' if m.group(1) == 'I' else 'on') + ' the farm', s)


def main():
    ap = arguments(n=120000, seed=1)
    ap.add_argument('--weights', help='changed kind weights, for example math=16,count=4')
    a = ap.parse_args()
    R.seed(a.seed)
    if a.weights:
        set_focus(a.weights)
    write(a, 'syn/', convo, fixup)


if __name__ == '__main__':
    main()
