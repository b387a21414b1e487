#!/usr/bin/env python3
"""Writes synthetic chat dialogues as JSON lines: {"src": "syn/<kind>", "messages": [{"role", "content"}, ...]}.

Every sentence comes from the templates, facts and word lists of data/; nothing is copied from elsewhere.
User turns are varied (case, punctuation, politeness, small typing mistakes); assistant turns are always clean,
short, plain English. Same --seed, same output.

  python3 generate_dialogues.py --n 120000 --seed 1 --out syn_train.jsonl [--exclude-prompts prompts.txt]
"""

import json, re
from phrases import Phrases, R, alt, arguments, art, cap, ex, join, pick, write

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


def g_capital():
    c, k, cont = pick(CAPS)
    r = R.random()
    if r < 0.55:
        u = say('capital.ask', c=c, C=cap(c))
        return [(noise(u), 'The capital of %s is %s.' % (c, k))]
    if r < 0.7:
        u = say('capital.ask2', k=k)
        return [(noise(u), '%s is the capital of %s.' % (k, c))]
    if r < 0.8:
        return [(noise(say('capital.ask3', c=c)), '%s is in %s.' % (cap(c), cont))]
    c2, k2, _ = pick(CAPS)
    if R.random() < 0.5 or k2 == k:
        return [(noise('Is %s the capital of %s?' % (k, c)), 'Yes, %s is the capital of %s.' % (k, c))]
    return [(noise('Is %s the capital of %s?' % (k2, c)), 'No, the capital of %s is %s.' % (c, k))]


def g_qa():
    q, a = pick(QA)
    return [(noise(pick(q)), a[0] if R.random() < 0.7 else pick(a))]


def g_animal():
    n, snd, baby, home, eats, legs, fact = pick(ANI)
    x = art(n)
    r = R.random()

    def sound_ans():
        return ('%s makes no sound that we can hear.' % cap(x) if snd.startswith('no sound') else 'The sound of %s is called a %s.' %
                (x, snd) if False else ('%ss %s.' % (cap(n), snd) if n not in T['animal.text'] else '%s can %s.' % (cap(x), snd)))

    if r < 0.2:
        return [(noise(say('animal.ask', x=x)), sound_ans())]
    if r < 0.38:
        return [(noise(say('animal.ask2', n=n, x=x)), 'A baby %s is called %s.' % (n, art(baby)))]
    if r < 0.53:
        return [(noise(say('animal.ask3', x=x)), '%s lives in %s.' % (cap(x), home) if not home.startswith(
            ('the grass', 'a ')) else '%s lives %s %s.' % (cap(x), 'on' if home.startswith(('the grass', 'a farm')) else 'in', home))]
    if r < 0.68:
        return [(noise(say('animal.ask4', x=x)), '%s eats %s.' % (cap(x), eats))]
    if r < 0.8:
        return [(noise(say('animal.ask5', x=x)), '%s has %s legs.' % (cap(x), NUM[int(legs)] if legs != '0' else 'no'))]
    return [(noise(say('animal.ask6', x=x)), fact)]


def g_words():
    r = R.random()
    if r < 0.3:
        a, b = pick(OPP)
        if R.random() < 0.5 and a != 'polite' and b not in ('full', 'right', 'answer', 'queen'):
            a, b = b, a
        if a in ('full', 'right', 'answer', 'polite', 'light', 'short', 'old', 'hard'):
            b = dict(rows('words.b'))[a]
        return [(noise(say('words.ask', w=a)), 'The opposite of %s is %s.' % (a, b))]
    if r < 0.52:
        a, b = pick(PLU)
        if R.random() < 0.2:
            return [(noise(say('words.ask2', w=b)), 'The singular of %s is %s.' % (b, a))]
        return [(noise(say('words.ask3', w=a)), 'The plural of %s is %s.' % (a, b))]
    if r < 0.72:
        a, b = pick(PAST)
        return [(noise(say('words.ask4', w=a)), 'The past tense of %s is %s.' % (a, b))]
    if r < 0.88:
        a, b = pick(SYN)
        return [(noise(say('words.ask5', w=a)), 'Another word for %s is %s.' % (a, b))]
    w, l = pick(RHY)
    return [(noise(say('words.ask6', w=w)), '%s rhymes with %s.' % (cap(pick(l)), w))]


def g_colour():
    if R.random() < 0.7:
        x, c = pick(COL)
        return [(noise(say('colour.ask', x=x)), '%s is %s.' % (cap(x), c))]
    a, b, c = pick(MIX)
    if R.random() < 0.5:
        a, b = b, a
    return [(noise(say('colour.ask2', a=a, b=b)), '%s and %s make %s.' % (cap(a), b, c))]


def g_dates():
    r = R.random()
    if r < 0.5:
        L, what = (DAYS, 'day') if R.random() < 0.5 else (MONTHS, 'month')
        i = R.randrange(len(L))
        d = L[i]
        if R.random() < 0.55:
            return [(noise(say('dates.ask', w=what, d=d)), '%s comes after %s.' % (L[(i + 1) % len(L)], d))]
        return [(noise(say('dates.ask2', w=what, d=d)), '%s comes before %s.' % (L[i - 1], d))]
    if r < 0.62:
        i = R.randrange(7)
        d = DAYS[i]
        k = pick([1, -1, 2])
        if k == 1:
            return [(noise(say('dates.ask3', d=d)), 'Tomorrow is %s.' % DAYS[(i + 1) % 7])]
        if k == -1:
            return [(noise(say('dates.ask4', d=d)), 'Yesterday was %s.' % DAYS[i - 1])]
        return [(noise(say('dates.ask5', d=d)), 'It will be %s.' % DAYS[(i + 2) % 7])]
    if r < 0.8:
        if R.random() < 0.5:
            i = R.randrange(12)
            return [(noise(say('dates.ask6', o=ORD[i])), 'The %s month of the year is %s.' % (ORD[i], MONTHS[i]))]
        i = R.randrange(7)
        return [(noise(say('dates.ask7', o=ORD[i])), 'The %s day of the week is %s, if the week starts on Monday.' % (ORD[i], DAYS[i]))]
    if r < 0.92:
        i = R.randrange(12)
        n = MLEN[i]
        return [(noise(say('dates.ask8', m=MONTHS[i])), '%s has %d days%s.' % (MONTHS[i], n, ', and 29 in a leap year' if i == 1 else ''))]
    d = pick(DAYS)
    we = d in ('Saturday', 'Sunday')
    return [(noise('Is %s part of the weekend?' % d), '%s, %s is %spart of the weekend.' % ('Yes' if we else 'No', d, '' if we else 'not '))
            ]


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
    if r < 0.68:
        a = R.randrange(1, 31)
        return [(noise(say('math.ask3', a=a)), f'Double {a} is {2 * a}.')]
    if r < 0.73:
        a = 2 * R.randrange(1, 26)
        return [(noise(say('math.ask4', a=a)), f'Half of {a} is {a // 2}.')]
    if r < 0.80:
        a, b = R.sample(range(0, 100), 2)
        big = R.random() < 0.6
        u = alt('Which is bigger, {a} or {b}?/Which number is larger, {a} or {b}?/What is more, {a} or {b}?/Is {a} or {b} bigger?'
                if big else 'Which is smaller, {a} or {b}?/Which number is less, {a} or {b}?/Is {a} or {b} smaller?').format(a=a, b=b)
        x, y = (max(a, b), min(a, b)) if big else (min(a, b), max(a, b))
        return [(noise(u), f'{x} is {"bigger" if big else "smaller"} than {y}.')]
    if r < 0.84:
        a, b = R.sample(range(0, 60), 2)
        return [(noise(f'Is {a} bigger than {b}?'), f'Yes, {a} is bigger than {b}.' if a > b else f'No, {a} is smaller than {b}.')]
    if r < 0.89:
        a = R.randrange(0, 101)
        return [(noise(say('math.ask5', a=a)), f'{a} is {"even" if a % 2 == 0 else "odd"}.')]
    if r < 0.95:
        a = R.randrange(0, 99)
        return [(noise(say('math.ask6', a=a)), f'{a + 1} comes after {a}.')]
    a = R.randrange(1, 100)
    return [(noise(say('math.ask7', a=a)), f'{a - 1} comes before {a}.')]


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


ALPHA = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'
SPELLW = [bare(x) for x, c, d in DEFS if ' ' not in bare(x) and len(bare(x)) <= 8]


def g_letters():
    r = R.random()
    if r < 0.35:
        i = R.randrange(25)
        return [(noise(say('letters.ask', x=ALPHA[i]), R.random() < 0.8), f'{ALPHA[i + 1]} comes after {ALPHA[i]}.')]
    if r < 0.6:
        w = pick(SPELLW)
        return [(noise(say('letters.ask2', w=w)), '-'.join(w.upper()) + '.')]
    if r < 0.8:
        w = pick(SPELLW)
        return [(noise(say('letters.ask3', w=w)), f'The first letter of {w} is {w[0].upper()}.')]
    if r < 0.9:
        w = pick(SPELLW)
        return [(noise(say('letters.ask4', w=w)), f'The last letter of {w} is {w[-1].upper()}.')]
    xs = R.sample(SPELLW, 3)
    return [(noise(say('letters.ask5', s=', '.join(xs)), True), ', '.join(sorted(xs)) + '.')]


# ---------------------------------------------------------------- sentences with known contents
TIMES = ['at %d o\'clock' % i for i in range(1, 13)] + ['in the morning', 'in the evening', 'in the afternoon']
ACTS = [x.split('|') for x in T['acts']]
PETS = T['pets']


def plur(t):
    return dict(PLU).get(t, t + ('es' if t.endswith(('s', 'x', 'ch', 'sh')) else 's'))


def sentence():
    """-> text, [(question, short answer, full answer)], [(false statement question, correct full answer)], fields"""
    n = gname()
    he(n)
    k = R.randrange(17)
    if k == 16:
        k = 13
    if k == 0:
        c, o = pick(F['colours']), pick(F['objects'])
        t = f'{n} has {art(c)} {o}.'
        c2 = pick([x for x in F['colours'] if x != c])
        o2 = pick([x for x in F['objects'] if x != o])
        return (t, [(f'What colour is the {o}?', cap(c), f'The {o} is {c}.'),
                    (f'What does {n} have?', cap(art(c)) + ' ' + o, f'{n} has {art(c)} {o}.'),
                    (f'Who has {art(c)} {o}?', n, f'{n} has {art(c)} {o}.')],
                [(f'Is the {o} {c}?', f'Is the {o} {c2}?', f'the {o} is {c}'),
                 (f'Does {n} have {art(o)}?', f'Does {n} have {art(o2)}?', f'{n} has {art(o)}')], {'name': n, 'colour': c, 'object': o})
    if k == 1:
        a = R.randrange(3, 90)
        c = pick(F['cities'])
        t = f'{n} is {a} years old and lives in {c}.'
        c2 = pick([x for x in F['cities'] if x != c])
        a2 = a + pick([-2, -1, 1, 2, 5])
        return (t, [(f'How old is {n}?', str(a), f'{n} is {a} years old.'), (f'Where does {n} live?', c, f'{n} lives in {c}.'),
                    (f'Who lives in {c}?', n, f'{n} lives in {c}.')],
                [(f'Does {n} live in {c}?', f'Does {n} live in {c2}?', f'{n} lives in {c}'),
                 (f'Is {n} {a} years old?', f'Is {n} {a2} years old?', f'{n} is {a} years old')], {'name': n, 'age': a, 'city': c})
    if k == 2:
        j, c = pick(F['jobs']), pick(F['cities'])
        t = f'{n} is {art(j)} in {c}.'
        j2 = pick([x for x in F['jobs'] if x != j])
        c2 = pick([x for x in F['cities'] if x != c])
        return (t, [(f'What is the job of {n}?', cap(j), f'{n} is {art(j)}.'), (f'Where does {n} work?', c, f'{n} works in {c}.'),
                    (f'Who is {art(j)}?', n, f'{n} is {art(j)}.'), (f'What does {n} do?', cap(j), f'{n} is {art(j)}.')
                    ], [(f'Is {n} {art(j)}?', f'Is {n} {art(j2)}?', f'{n} is {art(j)}'),
                        (f'Is {n} in {c}?', f'Is {n} in {c2}?', f'{n} is in {c}')], {'name': n, 'job': j, 'city': c})
    if k == 3:
        num, th = R.randrange(2, 30), pick(THINGS)
        p = pick(F['places'])
        t = f'{n} bought {num} {th} at the {p}.'
        num2 = num + pick([-1, 1, 3])
        p2 = pick([x for x in F['places'] if x != p])
        return (t, [(f'How many {th} did {n} buy?', str(num), f'{n} bought {num} {th}.'),
                    (f'What did {n} buy?', f'{num} {th}', f'{n} bought {num} {th}.'),
                    (f'Where did {n} buy the {th}?', f'At the {p}', f'{n} bought the {th} at the {p}.'),
                    (f'Who bought {num} {th}?', n, f'{n} bought {num} {th}.')], [
                        (f'Did {n} buy {num} {th}?', f'Did {n} buy {num2} {th}?', f'{n} bought {num} {th}')
                    ], {'name': n, 'number': num, 'item': th})
    if k == 4:
        d, tm, p = pick(DAYS), pick(TIMES), pick(F['places'])
        t = f'{n} goes to the {p} on {d} {tm}.'
        d2 = pick([x for x in DAYS if x != d])
        p2 = pick([x for x in F['places'] if x != p])
        return (t, [(f'When does {n} go to the {p}?', f'On {d} {tm}', f'{n} goes to the {p} on {d} {tm}.'),
                    (f'Where does {n} go on {d}?', f'To the {p}', f'{n} goes to the {p} on {d}.'),
                    (f'On which day does {n} go to the {p}?', d, f'{n} goes to the {p} on {d}.')],
                [(f'Does {n} go to the {p} on {d}?', f'Does {n} go to the {p} on {d2}?', f'{n} goes to the {p} on {d}'),
                 (f'Does {n} go to the {p}?', f'Does {n} go to the {p2}?', f'{n} goes to the {p}')], {'name': n, 'day': d, 'place': p})
    if k == 5:
        a = pick(PETS)
        pn = name()
        c = pick(F['colours'])
        t = f'{n} has a {c} {a} called {pn}.' if c[0] not in 'aeiou' else f'{n} has an {c} {a} called {pn}.'
        a2 = pick([x for x in PETS if x != a])
        return (t, [
            (f'What is the name of the {a}?', pn, f'The {a} is called {pn}.'),
            (f'What pet does {n} have?', cap(art(a)), f'{n} has {art(a)}.'), (f'What colour is the {a}?', cap(c), f'The {a} is {c}.'),
            (f'Who has {art(a)}?', n, f'{n} has {art(a)}.')
        ], [(f'Does {n} have {art(a)}?', f'Does {n} have {art(a2)}?', f'{n} has {art(a)}')], {'owner': n, 'animal': a, 'pet': pn})
    if k == 6:
        f, f2 = R.sample(F['foods'], 2)
        t = f'{n} likes {f} but does not like {f2}.'
        return (t, [(f'What does {n} like?', cap(f), f'{n} likes {f}.'), (f'What does {n} not like?', cap(f2), f'{n} does not like {f2}.')],
                [(f'Does {n} like {f}?', f'Does {n} like {f2}?', f'{n} likes {f}')], {'name': n, 'likes': f, 'dislikes': f2})
    if k == 7:
        o, p = pick(F['objects']), pick(F['places'])
        t = f'{n} left {his(n)} {o} in the {p}.'
        p2 = pick([x for x in F['places'] if x != p])
        o2 = pick([x for x in F['objects'] if x != o])
        return (t, [(f'Where is the {o}?', f'In the {p}', f'The {o} is in the {p}.'),
                    (f'What did {n} leave in the {p}?', f'{cap(his(n))} {o}', f'{n} left {his(n)} {o} in the {p}.'),
                    (f'Who left the {o} in the {p}?', n, f'{n} left the {o} in the {p}.')],
                [(f'Is the {o} in the {p}?', f'Is the {o} in the {p2}?', f'the {o} is in the {p}')], {'name': n, 'object': o, 'place': p})
    if k == 8:
        m = pick([x for x in GENDERED if x != n])
        o = pick(F['objects'])
        p = pick(F['places'])
        t = f'{n} gave {m} {art(o)} in the {p}.'
        return (t, [(f'Who gave {m} {art(o)}?', n, f'{n} gave {m} {art(o)}.'),
                    (f'What did {n} give {m}?', cap(art(o)), f'{n} gave {m} {art(o)}.'),
                    (f'Where did {n} give {m} {art(o)}?', f'In the {p}', f'It was in the {p}.'),
                    (f'Who got {art(o)}?', m, f'{m} got {art(o)}.')], [(f'Did {n} give {m} {art(o)}?', f'Did {m} give {n} {art(o)}?',
                                                                        f'{n} gave {m} {art(o)}')], {'from': n, 'to': m, 'object': o})
    if k == 9:
        mo = R.randrange(12)
        day = R.randrange(1, MLEN[mo] + 1)
        ev = say('sentence.ev')
        p = pick(F['cities'])
        t = f'{ev} is on {MONTHS[mo]} {day} in {p}.'
        m2 = pick([x for x in MONTHS if x != MONTHS[mo]])
        return (t, [(f'When is {ev.lower()}?', f'On {MONTHS[mo]} {day}', f'{ev} is on {MONTHS[mo]} {day}.'),
                    (f'Where is {ev.lower()}?', f'In {p}', f'{ev} is in {p}.'),
                    (f'In which month is {ev.lower()}?', MONTHS[mo], f'{ev} is in {MONTHS[mo]}.')], [
                        (f'Is {ev.lower()} in {MONTHS[mo]}?', f'Is {ev.lower()} in {m2}?', f'{ev.lower()} is in {MONTHS[mo]}')
                    ], {'event': ev[4:], 'date': f'{MONTHS[mo]} {day}', 'city': p})
    if k == 10:
        o = pick(F['objects'])
        pr = R.randrange(2, 100)
        cur = pick(['dollars', 'pounds', 'euros'])
        t = f'The {o} costs {pr} {cur}.'
        p2 = pr + pick([1, 2, 5, 10])
        return (t, [(f'How much does the {o} cost?', f'{pr} {cur}', f'The {o} costs {pr} {cur}.'),
                    (f'What is the price of the {o}?', f'{pr} {cur}', f'The {o} costs {pr} {cur}.'),
                    (f'What costs {pr} {cur}?', f'The {o}', f'The {o} costs {pr} {cur}.')], [
                        (f'Does the {o} cost {pr} {cur}?', f'Does the {o} cost {p2} {cur}?', f'the {o} costs {pr} {cur}')
                    ], {'item': o, 'price': pr, 'currency': cur})
    if k == 11:
        h, d = pick(F['hobbies']), pick(DAYS)
        m = pick([x for x in GENDERED if x != n])
        t = f'{n} and {m} enjoy {h} on {d}.'
        h2 = pick([x for x in F['hobbies'] if x != h])
        return (t, [(f'What do {n} and {m} enjoy?', cap(h), f'They enjoy {h}.'),
                    (f'When do they enjoy {h}?', f'On {d}', f'They enjoy {h} on {d}.'),
                    (f'Who enjoys {h}?', f'{n} and {m}', f'{n} and {m} enjoy {h}.')],
                [(f'Do they enjoy {h}?', f'Do they enjoy {h2}?', f'they enjoy {h}')], {'people': [n, m], 'hobby': h, 'day': d})
    if k == 13:
        inf, v, o = pick(ACTS)
        wh = pick(['Yesterday', 'Last week', 'This morning', 'On ' + pick(DAYS), 'Last summer', 'Today'])
        low = wh[0].lower() + wh[1:]
        t = f'{wh} {n} {v} {o}.' if R.random() < 0.6 else f'{n} {v} {o} {low}.'
        i2, v2, o2 = pick([x for x in ACTS if x[2] != o])
        m = pick([x for x in GENDERED if x != n])
        return (t, [(f'Who {v} {o}?', n, f'{n} {v} {o}.'), (f'What did {n} do?', f'{n} {v} {o}', f'{n} {v} {o}.'),
                    (f'When did {n} {inf} {o}?', wh, f'{n} {v} {o} {low}.'), ('Whose name is in the text?', n, f'The name is {n}.'),
                    ('Which name do you see?', n, f'The name is {n}.'), ('Who is this about?', n, f'It is about {n}.')],
                [(f'Did {n} {inf} {o}?', f'Did {n} {i2} {o2}?', f'{n} {v} {o}'),
                 (f'Did {n} {inf} {o}?', f'Did {m} {inf} {o}?', f'{n} {v} {o}')], {'name': n, 'time': wh})
    if k == 14:
        th = say('sentence.th')
        v = 'leaves' if th in ('bus', 'train', 'plane', 'boat') else 'opens' if th == 'shop' else 'starts'
        h = R.randrange(1, 13)
        h2 = pick([x for x in range(1, 13) if x != h])
        d = pick(DAYS + [''])
        t = f'The {th} {v} at {h}' + (f' on {d}.' if d else '.')
        return (t, [(f'When does the {th} {v[:-1]}?', f'At {h}', f'The {th} {v} at {h}.'),
                    (f'What {v} at {h}?', f'The {th}', f'The {th} {v} at {h}.'),
                    (f'At what time does the {th} {v[:-1]}?', f'At {h}', f'The {th} {v} at {h}.')],
                [(f'Does the {th} {v[:-1]} at {h}?', f'Does the {th} {v[:-1]} at {h2}?', f'the {th} {v} at {h}')], {'event': th, 'time': h})
    ph = '%d%d%d-%d%d%d%d' % tuple(R.randrange(10) for _ in range(7))
    t = f'You can call {n} at {ph}.'
    return (t, [(f'What is the phone number of {n}?', ph, f'The phone number of {n} is {ph}.'),
                ('What is the phone number?', ph, f'The phone number is {ph}.'), ('Whom can I call?', n, f'You can call {n}.')],
            [(f'Can I call {n}?', f'Can I call {pick([x for x in GENDERED if x != n])}?', f'you can call {n}')], {'name': n, 'phone': ph})


def frame(t, q):
    return (alt(
        '{t} {q}|{t} {q}|{t}\n{q}|Text: {t}\nQuestion: {q}|Read this: "{t}" {q}|"{t}" {q}|{q} "{t}"|Here is a sentence: {t} {q}|Read the sentence and answer. {t} {q}|Context: {t}\n\n{q}|{q} {t}'
        .replace('/', '\0').replace('|', '/')).replace('\0', '/').format(t=t, q=q))


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
    known = set(f)
    cand = [
        q for k, q in (('age', f'How old is {n}?'), ('city', f'Where does {n} live?'), ('job', f'What is the job of {n}?'),
                       ('x', f'What is the last name of {n}?'), ('x', f'How tall is {n}?'), ('phone', f'What is the phone number of {n}?'),
                       ('x', f'What is the favourite film of {n}?'), ('x', f'When was {n} born?')) if k not in known
    ]
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
    u = alt(
        'Find the {k} in this sentence: {t}|What is the {k} in this sentence? {t}|Extract the {k}: {t}|Take the {k} out of this text: "{t}"|Which {k} is in this sentence: "{t}"|Give me only the {k}: {t}|Extract the {k} from: {t}|What is the {k} here? {t}|Tell me the {k}: {t}|{t} What is the {k}?|Read "{t}" and give me the {k}.'
        .replace('|', '/')).format(k=key2, t=t)
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
        u = alt(
            'Answer in JSON with the keys {k}: {t}|Extract {k} as JSON: {t}|Give me {k} as JSON. {t}|Return JSON with {k} for this text: "{t}"|{t} Write {k} as JSON.|Turn this into JSON with the keys {k}: {t}|Make JSON with {k} from: {t}|Put {k} into JSON: {t}|Put the {k} of this text in JSON: {t}|Write this as JSON with {k}: {t}|JSON please, with {k}: {t}|Turn {k} into JSON: {t}|I need {k} in JSON. {t}'
            .replace('|', '/')).format(k=join(ks), t=t)
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


ADJS = T['adjs']
SUBJ = T['subjects']


def statement():
    """-> positive, question, negative (present tense)"""
    r = R.random()
    if r < 0.35:
        s, a = 'the ' + pick(SUBJ), pick(ADJS)
        return f'{cap(s)} is {a}.', f'Is {s} {a}?', f'{cap(s)} is not {a}.'
    if r < 0.5:
        a = pick('tired hungry happy late ready busy sick alone'.split())
        s = pick(['they', 'we', 'you'])
        return f'{cap(s)} are {a}.', f'Are {s} {a}?', f'{cap(s)} are not {a}.'
    if r < 0.75:
        n = gname()
        v, o = pick([('like', pick(F['foods'])), ('live', 'in ' + pick(F['cities'])),
                     ('play', pick(['football', 'tennis', 'chess', 'the piano'])),
                     ('work', 'in a ' + pick(['shop', 'school', 'hospital', 'bank', 'library'])),
                     ('drink', pick(['tea', 'coffee', 'milk', 'juice'])), ('read', pick(['books', 'the newspaper', 'stories'])),
                     ('speak', pick(['English', 'French', 'German', 'Spanish'])), ('want', art(pick(F['objects']))),
                     ('need', art(pick(F['objects'])))])
        return f'{n} {v}s {o}.', f'Does {n} {v} {o}?', f'{n} does not {v} {o}.'
    if r < 0.88:
        n = gname()
        p = pick(F['places'])
        return f'{n} is in the {p}.', f'Is {n} in the {p}?', f'{n} is not in the {p}.'
    n = gname()
    v = say('statement.answer')
    return f'{n} can {v}.', f'Can {n} {v}?', f'{n} cannot {v}.'


def q_(s):
    r = R.random()
    return '"%s"' % s if r < 0.4 else s


def g_rewrite():
    r = R.random()
    if r < 0.3:
        c = command()
        s = cap(c) + pick(['.', '!', '.'])
        u = alt(
            'Make this polite: {s}|Make this more polite: {s}|Rewrite this politely: {s}|Say this politely: {s}|How can I say this in a polite way? {s}|Please make this sentence polite: {s}|Make it polite: {s}|Rewrite as a polite request: {s}|Make this sentence polite: {s}|Make this sentence more polite: {s}|Can you make this more polite? {s}|Put this politely: {s}|Turn this into a polite sentence: {s}'
            .replace('|', '/')).format(s=q_(s))
        return [(noise(u, True) if R.random() < 0.3 else u, alt('Could you please {c}?').format(c=c))]
    p, q, n = statement()
    if r < 0.55:
        u = alt(
            'Make this a question: {s}|Turn this into a question: {s}|Change this sentence into a question: {s}|Rewrite this as a question: {s}|Make it a question: {s}|Ask this as a question: {s}|Change this to a question: {s}|Write this as a question: {s}|Form a question from this: {s}'
            .replace('|', '/')).format(s=q_(p))
        return [(noise(u, True) if R.random() < 0.2 else u, q)]
    if r < 0.7:
        u = alt(
            'Make this negative: {s}|Write the negative form: {s}|Say the opposite with not: {s}|Change this to a negative sentence: {s}|Put not into this sentence: {s}'
            .replace('|', '/')).format(s=q_(p))
        return [(u, n)]
    if r < 0.8:
        s = pick([p, n, cap(command()) + '.'])
        bad = s[:1].lower() + s[1:-1]
        u = alt(
            'Fix this sentence: {s}|Correct this: {s}|Add a capital letter and a full stop: {s}|Please correct this sentence: {s}'.replace(
                '|', '/')).format(s=q_(bad))
        return [(u, s)]
    if r < 0.92:
        a, b = pick([x for x in PAST if x[0] in T['rewrite.text']])
        tail = dict(rows('rewrite.tail'))[a]
        s = pick(['I', 'We', 'They', 'You'])
        u = alt(
            'Put this in the past tense: {s}|Write this in the past: {s}|Change to the past tense: {s}|Say this in the past: {s}'.replace(
                '|', '/')).format(s=q_(f'{s} {a} {tail}.'))
        return [(u, f'{s} {b} {tail}.')]
    a, b = pick([x for x in PLU if x[0] in T['rewrite.text2']])
    u = alt('Make this plural: {s}|Write this in the plural: {s}'.replace('|', '/')).format(s=q_(f'I have {art(a)}.'))
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
        return [(alt(
            'Reply with exactly: {s}|Answer only with: {s}|Respond with "{s}"|Just say {s}|Reply with the word {s}|Only write: {s}|Say {s} and nothing else|Answer with "{s}" only|Print {s}|Output: {s}'
            .replace('|', '/')).format(s=s), s)]
    u = alt('Repeat after me: {s}|Say this: {s}|Repeat: {s}|Please repeat: {s}|Say "{s}"|Repeat this: {s}|Write this: {s}|Copy this: {s}'.
            replace('|', '/')).format(s=s)
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
    if k == 0:
        return (
            f'Once upon a time, there was a {tr} {a} who lived near a {p}. {w}, the {a} met a {tr2} {b}. "Why are you alone?" asked the {b}. "I have no friends," said the {a}. "Then I will be your friend," said the {b}. {l}'
            if tr[0] not in 'aeiou' and p[0] not in 'aeiou' and tr2[0] not in 'aeiou' else
            f'There was once {art(tr)} {a} who lived near {art(p)}. {w}, the {a} met {art(tr2)} {b}. They talked and played until it was dark. {l}'
        )
    if k == 1:
        return f'{n} lived in a small house near the {p}. {w}, {H} found {art(a)} at the door. The {a} was cold and hungry, so {n} gave it {food} and a warm blanket. The next day the {a} felt much better. {n} was very {f}, and the {a} stayed with {"him" if n in MALE else "her"} for ever.'
    if k == 2:
        return (
            f'A {a} and a {b} wanted to see who was faster. {w}, they ran from the {p} to the river. The {b} was fast, but it stopped to rest. The {a} went on slowly and did not stop. In the end, the {a} won, and everyone was surprised.'
            if a[0] not in 'aeiou' and b[0] not in 'aeiou' else
            f'{cap(art(a))} and {art(b)} wanted to see who was faster. They ran from the {p} to the river. The {b} stopped to rest, but the {a} did not stop. In the end, the {a} won.'
        )
    if k == 3:
        return f'{w}, {n} went for a walk to the {p}. There {H} saw {art(a)} with {art(c)} {o}. "Is this your {o}?" asked the {a}. "Yes, I lost it last week," said {n}. {cap(H)} thanked the {a} and gave it some {food}. They were both very {f}.'
    if k == 4:
        return (
            f'{n} had a {tr} {a}. {w}, the {a} ran away. {n} looked in the {p}, in the garden and in the street, but could not find it. Then {H} heard a soft sound under the bed. There it was, fast asleep! {n} laughed and felt {f}.'
            if tr[0] not in 'aeiou' else
            f'{n} had {art(tr)} {a}. {w}, the {a} ran away. {n} looked everywhere, and at last {H} found it under the bed. {n} laughed and felt {f}.'
        )
    if k == 5:
        return f'{n} wanted {art(c)} {o} more than anything. {cap(H)} worked in the {p} every day and saved {his(n)} money. {w}, {H} had enough and went to the shop. On the way {H} met {m}, who had no money for food. {n} gave {m} the money and went home without the {o}. {cap(H)} had nothing, but {H} felt {f}.'
    if k == 6:
        return f'High in the hills lived {art(tr)} {a}. Every night it looked at the moon and wished for a friend. {w}, {art(b)} came by and asked for help. The {a} showed it the way to the {p}. "Thank you," said the {b}. "Will you come with me?" So they went on together. {l}'
    if k == 7:
        return (
            f'{w}, a {tr} {a} came to the {p}. Nobody knew where it came from. {n} was not afraid and said hello. "I am lost," said the {a}. {n} helped it to find the way home. The family of the {a} was {f}, and they gave {n} {art(c)} {o}.'
            if tr[0] not in 'aeiou' else
            f'{w}, {art(tr)} {a} came to the {p}. {n} was not afraid and said hello. "I am lost," said the {a}. {n} helped it to find the way home, and the {a} was very {f}.'
        )
    if k == 8:
        return f'{n} found an old map in the {p}. It showed the way to {art(c)} {o}. {n} and {his(n)} friend {m} walked all day, over a hill and across a river. At last they found a small box under a tree. In the box was the {o}. They were tired but very {f}.'
    if k == 9:
        return f'The {a} could not sleep. It counted the stars, but that did not help. {w}, the {b} next door began to sing a soft song. The {a} listened, closed its eyes and soon fell asleep. The next day it brought the {b} some {food} to say thank you.'
    return f'{n} was afraid of the dark. {w}, the lights went out in the whole {p}. {n} heard {m} cry, so {H} took {"his" if n in MALE else "her"} friend by the hand. "Do not be afraid," said {n}. Together they found a candle and lit it. After that, {n} was never afraid of the dark again.'


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


def g_fun():
    r = R.random()
    if r < 0.4:
        return [(noise(say('fun.ask')), pick(JOKES))]
    if r < 0.7:
        return [(noise(say('fun.ask2')), pick(FUN))]
    q, a = pick(RIDDLES)
    return [(noise(say('fun.ask3')), q), (noise(say('fun.ask4')), f'The answer is: {a[0].lower() + a[1:]}')]


def g_howto():
    h, a = pick(HOW)
    you = h
    return [(noise(say('howto.ask', h=h, h2=you)), a)]


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
def g_like():
    r = R.random()
    h = pick(F['hobbies'])
    f = pick(F['foods'])
    j = pick(F['jobs'])
    c = pick(F['cities'])
    an = pick(PETS)
    if r < 0.2:
        return [(noise(say('like.ask', h=h)), say('like.answer', h=h, H=cap(h)))]
    if r < 0.35:
        return [(noise(alt('Do you like {h}?/Do you enjoy {h}?').format(h=h)),
                 f'I am a program, so I cannot do it myself, but many people enjoy {h}. Do you?')]
    if r < 0.5:
        return [(noise(say('like.ask2', f=f)), say('like.answer2', F=cap(f)))]
    if r < 0.6:
        return [(noise(say('like.ask3', j=art(j))), f'It must be interesting to be {art(j)}. What do you like about it?')]
    if r < 0.72:
        return [(noise(say('like.ask4', c=c), True), say('like.answer3', c=c))]
    if r < 0.85:
        return [(noise(say('like.ask5', a=an)), f'How nice! What is the name of your {an}?')]
    a, b = R.sample(T['like.text'], 2)
    return [(noise(say('like.ask6', a=a, A=cap(a), b=b)), f'Both {a} and {b} have their good sides. Which do you like better?')]


def filler():
    return pick([g_capital, g_math, g_define, g_qa, g_animal, g_words, g_talk, g_colour, g_dates, g_fun, g_list, g_like])()[:1]


def g_memory():
    """the user says something about themself and asks for it later"""
    k = R.randrange(8)
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
    if k == 4:
        c = pick(F['colours'])
        t.append((noise(say('memory.ask3', c=c)), f'{cap(c)} is a nice colour.'))
        q = say('memory.ask4')
        a = f'Your favourite colour is {c}.'
    elif k == 5:
        an, pn = pick(PETS), name()
        t.append((noise(say('memory.ask5', a=an, p=pn), True), f'{pn} is a lovely name for a {an}!'))
        q = say('memory.ask6', a=an)
        a = f'Your {an} is called {pn}.'
    elif k == 6:
        c = pick(F['cities'])
        t.append((noise(alt('I live in {c}./I am from {c}.').format(c=c), True), say('like.answer3', c=c)))
        q = say('memory.ask7')
        a = f'You live in {c}.'
    else:
        n = R.randrange(6, 90)
        t.append((noise(alt('I am {n} years old./My age is {n}.').format(n=n)), 'Thank you for telling me. How can I help you?'))
        q = say('memory.ask8')
        a = f'You are {n} years old.'
    for _ in range(pick([0, 0, 1, 1, 2])):
        t += filler()
    return t + [(noise(q), a)]


def g_followup():
    base = pick([g_capital, g_define, g_qa, g_math, g_words, g_animal, g_colour, g_howto])()
    u, a = base[0]
    r = R.random()
    if r < 0.4:
        return base + [(noise(say('followup.ask')), a)]
    if r < 0.7:
        return base + [(noise(say('followup.ask2')), f'You asked: "{u}"')]
    return base + [(noise(say('followup.ask3')), pick(INT['sure'][1]))]


def g_followcap():
    """short follow-up questions that lean on the turn before"""
    r = R.random()
    if r < 0.4:
        (c, k, _), (c2, k2, _) = R.sample(CAPS, 2)
        return [(noise(f'What is the capital of {c}?'), f'The capital of {c} is {k}.'),
                (noise(say('followcap.ask', c=c2)), f'The capital of {c2} is {k2}.')]
    if r < 0.6:
        a, b = R.sample(OPP[:40], 2)
        return [(noise(f'What is the opposite of {a[0]}?'), f'The opposite of {a[0]} is {a[1]}.'),
                (noise(alt('And of {c}?/And {c}?/What about {c}?').format(c=b[0])), f'The opposite of {b[0]} is {b[1]}.')]
    if r < 0.75:
        a, b = R.sample(PLU, 2)
        return [(noise(f'What is the plural of {a[0]}?'), f'The plural of {a[0]} is {a[1]}.'),
                (noise(alt('And of {c}?/And {c}?/What about {c}?').format(c=b[0])), f'The plural of {b[0]} is {b[1]}.')]
    if r < 0.9:
        a, b, c = small(), small(), R.randrange(1, 11)
        return [(noise(f'What is {a} + {b}?'), f'{a} + {b} = {a + b}.'), (noise(say('followcap.ask2',
                                                                                    c=c)), f'{a + b} + {c} = {a + b + c}.')]
    n = pick([2, 3])
    j = R.sample(JOKES, n)
    return [(noise('Tell me a joke.'), j[0])] + [(noise(say('followcap.ask3')), x) for x in j[1:]]


def passage():
    n = gname()
    m = pick([x for x in GENDERED if x != n])
    H = he(n)
    a = pick(PETS)
    c = pick(F['colours'])
    p, p2 = R.sample(F['places'], 2)
    o = pick(F['objects'])
    f = pick(F['foods'])
    d = pick(DAYS)
    num = R.randrange(2, 13)
    k = R.randrange(4)
    if k == 0:
        return f'On {d}, {n} went to the {p} with {his(n)} {a}. There {H} met {m}, who had {art(c)} {o}. Then they ate {f} together.', [
            (f'When did {n} go to the {p}?', f'{n} went to the {p} on {d}.'), (f'Where did {n} go?', f'{n} went to the {p}.'),
            (f'Whom did {n} meet?', f'{n} met {m}.'), ('What did they eat?', f'They ate {f}.'),
            (f'Who had {art(o)}?', f'{m} had {art(o)}.'), (f'What colour was the {o}?', f'The {o} was {c}.')
        ]
    if k == 1:
        return f'{n} has {num} {plur(a)}. They live in a {c} house near the {p}. Every {d}, {m} comes to feed them.' if c[
            0] not in 'aeiou' else f'{n} has {num} {plur(a)}. They live in an {c} house near the {p}. Every {d}, {m} comes to feed them.', [
                (f'How many {plur(a)} does {n} have?', f'{n} has {num} {plur(a)}.'), ('What colour is the house?', f'The house is {c}.'),
                ('Who comes to feed them?', f'{m} comes to feed them.'), (f'Who has {plur(a)}?', f'{n} has {num} {plur(a)}.'),
                ('Where is the house?', f'The house is near the {p}.')
            ]
    if k == 2:
        return f'{n} lost {his(n)} {o} in the {p}. {cap(H)} looked for it for {num} hours. In the end, {m} found it in the {p2}.', [
            (f'What did {n} lose?', f'{n} lost {his(n)} {o}.'), (f'Who found the {o}?', f'{m} found the {o}.'),
            (f'Where was the {o} found?', f'It was found in the {p2}.'),
            (f'How many hours did {n} look for it?', f'{n} looked for it for {num} hours.'),
            (f'Where did {n} lose the {o}?', f'{n} lost it in the {p}.')
        ]
    j, j2 = R.sample(F['jobs'], 2)
    c1, c2 = R.sample(F['cities'], 2)
    return f'{n} is {art(j)} and lives in {c1}. {m} is {art(j2)} and lives in {c2}.', [(f'Where does {n} live?', f'{n} lives in {c1}.'),
                                                                                       (f'Where does {m} live?', f'{m} lives in {c2}.'),
                                                                                       (f'Who is {art(j)}?', f'{n} is {art(j)}.'),
                                                                                       (f'Who lives in {c2}?', f'{m} lives in {c2}.'),
                                                                                       (f'What is the job of {m}?', f'{m} is {art(j2)}.'),
                                                                                       (f'What is the job of {n}?', f'{n} is {art(j)}.')]


def g_passage():
    t, qs = passage()
    n = 1 if R.random() < 0.7 else min(3, len(qs))
    sel = R.sample(qs, n)
    u = frame(t, sel[0][0])
    return [(noise(u, True) if R.random() < 0.3 else u, sel[0][1])] + [(noise(q), a) for q, a in sel[1:]]


KINDS = {  # generator: weight
    'greet': (g_greet, 5), 'talk': (g_talk, 8), 'self': (g_self, 8), 'parley': (g_parley, 9), 'define': (g_define, 13),
    'list': (g_list, 3.5), 'class': (g_class, 3), 'odd': (g_odd, 1), 'capital': (g_capital, 6), 'qa': (g_qa, 10), 'animal': (g_animal, 5),
    'words': (g_words, 8), 'colour': (g_colour, 2.5), 'dates': (g_dates, 3.5), 'math': (g_math, 10), 'wordproblem': (g_wordproblem, 2),
    'count': (g_count, 2.5), 'letters': (g_letters, 1.5), 'extract': (g_extract, 6), 'yesno': (g_yesno, 4), 'notsaid': (g_notsaid, 1.5),
    'pull': (g_pull, 3), 'json': (g_json, 3), 'rewrite': (g_rewrite, 5), 'echo': (g_echo, 2.5), 'story': (g_story, 4.5),
    'poem': (g_poem, 1.5), 'fun': (g_fun, 2.5), 'howto': (g_howto, 2), 'unknown': (g_unknown, 5), 'unsafe': (g_unsafe, 2),
    'like': (g_like, 3), 'memory': (g_memory, 6), 'followup': (g_followup, 2), 'followcap': (g_followcap, 2), 'passage': (g_passage, 3)
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
