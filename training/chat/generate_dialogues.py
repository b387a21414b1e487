#!/usr/bin/env python3
"""Writes synthetic chat dialogues as JSON lines: {"src": "syn/<kind>", "messages": [{"role", "content"}, ...]}.

Every sentence comes from the templates, facts and word lists of data/; nothing is copied from elsewhere.
User turns are varied (case, punctuation, politeness, small typing mistakes); assistant turns are always clean,
short, plain English. Same --seed, same output.

  python3 generate_dialogues.py --n 120000 --seed 1 --out syn_train.jsonl [--exclude-prompts prompts.txt]
"""

import functools, json, re
from phrases import Phrases, R, Stage, alt, arguments, art, cap, ex, join, low, pick, write

F, I, T, W = (Phrases(k) for k in ('facts', 'intents', 'dialogues', 'words'))
say, rows = T.say, T.rows
NUM = T['numbers']
DEFS, CAPS, ANI = F.rows('definitions'), F.rows('capitals'), F.rows('animals')
QA = [(q.split('/'), a) for q, *a in F.rows('questions')]
OPP, PLU, PAST, COL = (F.rows(k) for k in ('opposites', 'plurals', 'past_tenses', 'colour_of'))
RHY = [(w, l) for w, *l in F.rows('rhymes')]
JOKES, POEMS, HAIKU, SYSTEMS = F['jokes'], F['poems'], F.rows('haiku'), T['systems']
UNK, UNS = ([(q.split('|'), a) for q, a in I.rows(k)] for k in ('cannot_know', 'refused'))
DAYS, MONTHS = W['days'], W['months']
MLEN = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
MALE = set(F['male_names'])
GENDERED = sorted((MALE | set(F['female_names'])) & set(F['names']))


def he(n):
    return 'he' if n in MALE else 'she'


def his(n):
    return 'his' if n in MALE else 'her'


VOICES = T['voices']

TYPOS = dict(rows('typos'))


def noise(u, soft=False):
    """Vary a user turn. soft: keep the words, only case and final mark may change."""
    if not soft:
        r = R.random()
        if r < 0.05:
            u = alt('Hey, /Hi, /Hello, /Ok, /So, /Well, ') + (u if u.startswith(('I ', "I'")) else low(u))
        elif r < 0.08 and u.endswith('?'):
            u = u[:-1] + ', please?'
        elif r < 0.10 and u.endswith('.'):
            u = u[:-1] + ', please.'
        elif r < 0.16:
            w = say('noise.ask')
            u = w + (u if u.startswith(('I ', "I'")) else low(u))
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
                u = lead + low(u)[:-1]
            if m or m2:
                u = u.rstrip('?') + ('?' if lead[:2] in ('Ca', 'Co', 'Do') else '.')
        if R.random() < 0.25:
            for a, b in rows('contractions'):
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
        u = low(u)
    elif r < 0.20 and not soft:
        u = u.upper()
    if R.random() < 0.22 and u[-1:] in '?.!':
        u = u[:-1]
    return u


# questions and answers; the patterns multiply the ways to ask for the things that matter most
INT = {k: (q.split('/'), a) for k, q, *a in I.rows('fixed')}
PAT_EXTRA = {k: v for k, *v in I.rows('patterns')}
INT_PARLEY = [k for k in INT if k in T['about_parley']]
INT_TALK = [k for k in INT if k not in INT_PARLEY and k not in T['about_itself']]


def g_intent(keys):
    k = pick(keys)
    q, a = INT[k]
    u = ex(pick(q)) if k not in PAT_EXTRA or R.random() < 0.45 else ex(pick(PAT_EXTRA[k]))
    if u[-1] not in '?.!':
        u += (pick(['', '.', '.', '!']) if k in T['intent.text'] else pick(['', '.', '.']))
    return [(noise(u, soft=k in ('greet', 'gibberish', 'ok', 'cool', 'lol', 'thanks', 'bye')), pick(a))]


g_talk = lambda: g_intent(INT_TALK)
g_greet = lambda: g_intent(['greet', 'how', 'thanks', 'bye', 'morning', 'greet', 'evening', 'fine'])
g_self = lambda: g_intent(T['about_itself'])


def g_parley():
    if R.random() < 0.18:
        v = pick(VOICES)
        if R.random() < 0.35:
            bad = say('parley.bad')
            answer = f'No, there is no voice called {bad}. You can use nona or aus-female-1, for example.'
            return [(noise(say('parley.ask', bad), True), answer)]
        kind = f'an Australian {"fe" if "female" in v else ""}male voice' if v.startswith('aus') else "one of Parley's voices"
        u = say('parley.ask2', v)
        return [(noise(u, True), f'{v} is {kind}.' if u.startswith('What') else f'Yes, {v} is {kind}.')]
    return g_intent(INT_PARLEY)


PLURAL_SUBJ = {'scissors', 'stairs', 'the lungs'}


def bare(x):
    return re.sub(r'^(an?|the) ', '', x)


def g_define():
    x, c, d = pick(DEFS)
    t = say('define.text')
    if c == 'job' and R.random() < 0.35:
        t = say('define.text2')
    if c in ('tool', 'machine') and R.random() < 0.3:
        t = say('define.text3') if x not in PLURAL_SUBJ else t
    v = 'are' if x in PLURAL_SUBJ else 'is'
    return [(noise(cap(t.format(x=x, n=bare(x), v=v))), f'{cap(x)} {v} {d}.')]


BYCLASS = {c: [x for x, k, _ in DEFS if k == c] for _, c, _ in DEFS}
LISTC = dict(rows('class_plurals'))
XLISTS = {
    'colours': F['colours'], 'days': DAYS, 'months': MONTHS, 'countries': [c[0] for c in CAPS if c[0] not in ('England', 'Scotland', 'Wales')],
    'planets': T['members'], 'languages': T['members2'], 'names': F['names'], 'cities': F['cities'],
    'hobbies': [h for h in F['hobbies'] if 'playing' not in h], 'farm animals': T['farm_animals'], 'wild animals': T['wild_animals'],
    'pets': T['usual_pets'], 'voices': VOICES
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
        return [(noise(say('list.ask2').replace('a {s}', art(sg))), cap(xs[0]) + '.')]
    u = w.format(n=pick([NUM[n], NUM[n], str(n), *(['some'] if n == 3 else [])]), p=pl)
    if R.random() < 0.12 and n > 2:
        return [(noise(u + ' One per line.'), '\n'.join(cap(x) for x in xs))]
    return [(noise(u), cap(join(xs)) + '.')]


def a_class(c):
    return c if c in ('clothing', 'furniture', 'weather', 'food') else art(c)


def g_class():
    x, c, d = pick([e for e in DEFS if e[1] in T['noun_classes'] and e[0] not in PLURAL_SUBJ])
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
    a, b = ('animal', 'vehicle') if {a, b} == {'animal', 'bird'} else ('fruit', 'tool') if {a, b} == {'fruit', 'vegetable'} else (a, b)
    xs = R.sample([bare(x) for x in BYCLASS[a]], 3)
    o = bare(pick(BYCLASS[b]))
    l = xs + [o]
    R.shuffle(l)
    return [(noise(say('odd.ask', ', '.join(l)), True), f'{cap(o)} does not belong. The others are {a}s.')]


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


def around(names):
    """One of the names, the one after it and the one before it."""
    i = R.randrange(len(names))
    return names[i], names[(i + 1) % len(names)], names[i - 1]


def neighbours():
    names, what = (DAYS, 'day') if R.random() < 0.5 else (MONTHS, 'month')
    return what, *around(names)


def J(o):
    return json.dumps(o, ensure_ascii=False)


def json_list():
    """What of, how many, and a list of as many."""
    c = pick([k for k in LISTC if len(BYCLASS[k]) >= 4])
    n = pick([2, 3, 3, 4])
    return LISTC[c], NUM[n], J(R.sample([bare(x) for x in BYCLASS[c]], n))


def mix():
    a, b, c = pick(F.rows('colour_mixes'))
    return (b, a, c) if R.random() < 0.5 else (a, b, c)


def small():
    return R.randrange(0, 13) if R.random() < 0.85 else R.randrange(0, 21)


def operands():
    """-> sign, numbers, result and the sign in words"""
    op = pick('++++--**/')
    if op == '+':
        a, b = (small(), small()) if R.random() < 0.75 else (R.randrange(10, 90), R.randrange(1, 11) if R.random() < 0.6 else 10 * R.randrange(1, 6))
        return op, a, b, a + b, 'plus'
    if op == '-':
        a, b = (small(), small()) if R.random() < 0.8 else (R.randrange(20, 100), R.randrange(1, 11))
        return op, max(a, b), min(a, b), abs(a - b), 'minus'
    if op == '*':
        a, b = R.randrange(0, 13), R.randrange(0, 11)
        return op, a, b, a * b, 'times'
    b, c = R.randrange(1, 11), R.randrange(0, 11)
    return op, b * c, b, c, 'divided by'


def g_math():
    r = R.random()
    if r >= 0.62:
        return scene('math', r=r)
    op, a, b, c, w = operands()
    s = {'*': pick(['x', '*', '×']), '/': pick(['/', '÷'])}.get(op, op)
    if R.random() < 0.6:
        sp = ' ' if R.random() < 0.8 else ''
        return [(noise(say('sum', e=f'{a}{sp}{s}{sp}{b}'), R.random() < 0.5), f'{a} {s} {b} = {c}.')]
    u = say('math.ask')
    if R.random() < 0.4:
        return [(noise(alt(dict(rows('math.ask2'))[op]).format(a=a, b=b)), f'{a} {w} {b} is {c}.')]
    if max(a, b) <= 12 and R.random() < 0.35:
        return [(noise(cap(u.format(a=NUM[a], b=NUM[b], w=w))), cap(f'{NUM[a]} {w} {NUM[b]} is {NUM[c] if c <= 12 else c}.'))]
    return [(noise(u.format(a=a, b=b, w=w)), f'{a} {w} {b} is {c}.')]


def g_wordproblem():
    n = pick(GENDERED)
    n2 = pick([x for x in GENDERED if x != n])
    t, a, b, r = pick(T['things']), R.randrange(2, 13), R.randrange(1, 10), R.random()
    words = R.random() < 0.4
    N = lambda k: NUM[k] if k <= 12 and words else str(k)
    if r < 0.3:
        u = say('wordproblem.ask').format(n=n, n2=n2, a=N(a), b=N(b), t=t, h=he(n), hm='him' if n in MALE else 'her')
        return [(noise(u, True), f'{n} has {N(a + b)} {t}.')]
    if r < 0.6:
        u = say('wordproblem.ask2').format(n=n, n2=n2, a=N(a + b), b=N(b), t=t)
        return [(noise(u, True), f'{cap(N(a))} {t} are left.' if a != 1 else f'{cap(N(1))} is left.')]
    if r < 0.8:
        a = R.randrange(2, 6)
        if b > 1:
            u = f'There are {N(a)} boxes with {N(b)} {t} in each box. How many {t} are there?'
            return [(noise(u, True), f'There are {N(a * b)} {t}.')]
        return [(noise(f'I have {N(a)} {t}. You give me one more. How many {t} do I have?', True), f'You have {N(a + 1)} {t}.')]
    return [(noise(say('wordproblem.ask3').format(a=N(a), b=N(b), t=t), True), f'You have {N(a + b)} {t}.')]


def commas(xs):
    return ', '.join(map(str, xs)) + '.'


def g_count():
    r = R.random()
    if r < 0.35:
        n = R.randrange(3, 21)
        return [(noise(say('count.ask').format(n=n if n > 12 or R.random() < 0.5 else NUM[n])), commas(range(1, n + 1)))]
    if r < 0.6:
        a = R.randrange(2, 60)
        b = a + R.randrange(3, 11)
        return [(noise(say('count.ask2', a=a, b=b)), commas(range(a, b + 1)))]
    if r < 0.75:
        a = R.randrange(3, 16)
        return [(noise(say('count.ask3', a=a)), commas(range(a, 0, -1)))]
    if r < 0.87:
        k, w = pick([(2, 'twos'), (5, 'fives'), (10, 'tens')])
        n = R.randrange(4, 10)
        return [(noise(say('count.ask4', w=w, n=k * n)), commas(k * i for i in range(1, n + 1)))]
    xs = R.sample(range(1, 60), pick([3, 3, 4]))
    s, q = ', '.join(map(str, xs)), R.random()
    if q < 0.4:
        return [(noise(say('count.ask5', s=s)), commas(sorted(xs)))]
    if q < 0.7:
        return [(noise(say('count.ask6', s=s)), f'The largest number is {max(xs)}.')]
    return [(noise(say('count.ask7', s=s)), f'The smallest number is {min(xs)}.')]


def plur(t):
    return dict(PLU).get(t, t + ('es' if t.endswith(('s', 'x', 'ch', 'sh')) else 's'))


def date():
    month = R.randrange(12)
    return MONTHS[month], R.randrange(1, MLEN[month] + 1)


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
    T, {**F, 'days': DAYS, 'months': MONTHS, 'people': GENDERED, 'short_words': SPELLW, 'easy_opposites': F['opposites'][:40],
        'common_opposites': F['opposites'][:60]}, {
        'chance': R.random, 'sound': sound, 'opposite': opposite, 'neighbours': neighbours, 'mix': mix, 'small': small, 'date': date,
        'rhyme': lambda: pick(RHY), 'both': lambda n, m: [n, m], 'in_order': lambda a, b: (max(a, b), min(a, b)),
        'bigger': lambda a, b: f'Yes, {a} is bigger' if a > b else f'No, {a} is smaller',
        'yes_or_no': lambda k, k2: 'capital.yes' if R.random() < 0.5 or k2 == k else 'capital.no',
        'never': lambda: never(), 'made_up': lambda: made_up(), 'made_up_country': lambda: made_up(True), 'json_list': json_list,
        'next': lambda: around(pick([DAYS, MONTHS]))[:2], 'json_of_capital': lambda c, k: J({'country': c.replace('the ', ''), 'capital': k}),
        'phone': lambda: '%d%d%d-%d%d%d%d' % tuple(R.randrange(10) for _ in range(7))
    }, {
        'he': he, 'his': his, 'him': lambda n: 'him' if n in MALE else 'her', 'plural': plur, '0': lambda row: row.split('\t')[0],
        '1': lambda row: row.split('\t')[1], 'in': lambda home: ('on ' if home.startswith(('the grass', 'a farm')) else 'in ') + home,
        'legs': lambda n: NUM[int(n)] if n != '0' else 'no', 'day': lambda i: DAYS[int(i) % 7], 'month': lambda i: MONTHS[i],
        'length': lambda i: f'{MLEN[i]} days' + (', and 29 in a leap year' if i == 1 else ''), 'th': lambda i: T['ordinals'][i],
        'weekend': lambda d: f'Yes, {d} is' if d in ('Saturday', 'Sunday') else f'No, {d} is not', 'letter': lambda i: ALPHA[i],
        'spelt': lambda w: '-'.join(w.upper()), 'first': lambda w: w[0].upper(), 'last': lambda w: w[-1].upper(),
        'commas': ', '.join, 'sorted': lambda xs: ', '.join(sorted(xs)), 'even': lambda a: 'odd' if a % 2 else 'even'
    }, dict(turn=turn, user=user, answer=answer))


def scene(key, **v):
    """The turns of a section of data/dialogues.txt."""
    return [tuple(t) for t in S.play(key, **v)[0]['turns']]


def sentence():
    """-> text, [(question, short answer, full answer)], [(true question, false question, what is so)], fields"""
    n = pick(GENDERED)
    v, parts = S.play(pick(T['sentence']), n=n)
    filled = lambda rows: [[S.form.vformat(x, (), v) for x in row] for row in rows]
    fields = {k: S.fill(x, v) for k, x in (f.split('=') for f in parts['fields'][0])}
    return v['t'], filled(parts['ask']), filled(parts['not']), fields


def g_extract():
    t, qs, yn, f = sentence()
    if R.random() < 0.35:  # two sentences, question about one
        t2 = sentence()[0]
        t = t + ' ' + t2 if R.random() < 0.5 else t2 + ' ' + t
    q, s, full = pick(qs)
    if R.random() < 0.12:
        return [(say('frame', t=t, q=q + ' ' + say('extract.ask')), s + ('.' if R.random() < 0.5 else ''))]
    u = say('frame', t=t, q=q)
    return [(noise(u, True) if R.random() < 0.5 else u, full)]


def g_yesno():
    t, qs, yn, f = sentence()
    a, b, full = pick(yn)
    if R.random() < 0.15:
        t = t + ' ' + sentence()[0]
    yes = R.random() < 0.5
    u = say('frame', t=t, q=(a if yes else b) + say('yesno.ask'))
    return [(noise(u, True) if R.random() < 0.5 else u, ('Yes, ' if yes else 'No, ') + full + '.')]


def g_notsaid():
    t, qs, yn, f = sentence()
    n = f.get('name') or f.get('owner')
    if not n:
        return g_extract()
    u = say('frame', t=t, q=pick([q.format(n=n) for k, q in rows('notsaid') if k not in f]))
    return [(noise(u, True) if R.random() < 0.4 else u, 'The text does not say that.')]


def g_pull():
    t, qs, yn, f = sentence()
    R.random()
    key = pick([k for k in f if not isinstance(f[k], list)])
    what = dict(rows('pull.key2')).get(key, key).format(n=f.get('name'))
    u = say('pull.ask', k=what, t=t)
    u = u if R.random() < 0.7 else noise(u, True)
    return [(u, str(f[key]) if R.random() < 0.7 or what.startswith('food') else f'The {what} is {f[key]}.')]


def g_json():
    r = R.random()
    if r < 0.5:
        t, qs, yn, f = sentence()
        ks = R.sample(list(f), 2) if R.random() < 0.4 else list(f)
        return [(say('json.keys', k=join(ks), t=t), J({k: f[k] for k in ks}))]
    return scene('json.about', r=r)


def command():
    v, objs = pick(rows('verb_phrases'))
    objs = [o.replace('_', ' ') for o in objs.split()]
    if v in ('bring', 'give', 'send', 'pass', 'tell', 'show'):
        o = 'me ' + pick(objs[1:])
    else:
        o = 'the ' + pick(objs[1:]) if v in ('open', 'close') else pick(objs)
    return v + ' ' + re.sub(r'^me the$', 'me the book', o)


def statement():
    """-> positive, question, negative (present tense)"""
    v, parts = S.play('statement')
    return [S.form.vformat(x, (), v) for x in parts['state'][0]]


def g_rewrite():
    def task(key, s):
        t = say('rewrite.' + key)
        return t.format(s=f'"{s}"' if R.random() < 0.4 else s)

    r = R.random()
    if r < 0.3:
        c = command()
        u = task('polite', cap(c) + pick(['.', '!', '.']))
        return [(noise(u, True) if R.random() < 0.3 else u, pick([f'Could you please {c}?']))]
    p, q, n = statement()
    if r < 0.55:
        u = task('question', p)
        return [(noise(u, True) if R.random() < 0.2 else u, q)]
    if r < 0.7:
        return [(task('negative', p), n)]
    if r < 0.8:
        s = pick([p, n, cap(command()) + '.'])
        return [(task('mend', low(s)[:-1]), s)]
    if r < 0.92:
        a, b = pick([x for x in PAST if x[0] in T['rewrite.text']])
        s, tail = pick(['I', 'We', 'They', 'You']), dict(rows('rewrite.tail'))[a]
        return [(task('past', f'{s} {a} {tail}.'), f'{s} {b} {tail}.')]
    a, b = pick([x for x in PLU if x[0] in T['rewrite.text2']])
    return [(task('plural', f'I have {art(a)}.'), f'I have two {b}.')]


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
        s = pick(T['echo.s']) if R.random() < 0.6 else s
        return [(say('echo.only', s=s), s)]
    return [(say('echo.ask', s=s), s)]


STORY_ANI = [a[0] for a in ANI if ' ' not in a[0] or a[0] == 'polar bear']


def story(ani=None, nm=None, obj=None):
    a = ani or pick(STORY_ANI)
    b = pick([x for x in STORY_ANI if x != a])
    n = nm or pick(GENDERED)
    tr, tr2 = R.sample(T['trait'], 2)
    o = obj or pick(F['objects'])
    p, c, f = pick(F['places']), pick(F['colours']), pick('happy proud glad thankful calm cheerful'.split())
    w, l, k = pick(T['weather']), pick(T['lesson']), R.randrange(11)
    m = pick([x for x in GENDERED if x != n])
    food = pick(F['foods'])
    if nm or ani:
        k = pick([1, 3, 4, 7] if nm and ani else [1, 3, 4, 5, 7, 8, 10] if nm else [0, 2, 6, 9, 3, 7])
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
        a = pick(STORY_ANI) if R.random() < 0.7 else pick(T['story_heroes'])
        return [(noise(f'{p} about {art(a)}{end}'), story(ani=a))]
    if r < 0.75:
        n = pick(GENDERED)
        return [(noise(f'{p} about {n}{end}', True), story(nm=n))]
    if r < 0.9:
        n = pick(GENDERED)
        a = pick(STORY_ANI)
        who = say('story.who', n=n, art_a=art(a), g='boy' if n in MALE else 'girl')
        return [(noise(f'{p} about {who}{end}', True), story(ani=a, nm=n))]
    o = pick(F['objects'])
    return [(noise(f'{p} about {art(o)}{end}'), story(obj=o))]


def g_poem():
    r = R.random()
    if r < 0.2:
        x, h = pick(HAIKU)
        return [(noise(say('poem.ask', x=x) if R.random() < 0.8 else say('poem.ask2')), h.replace('/', '\n'))]
    ask = say('poem.ask3')
    if r < 0.35:
        seasons = ['spring', 'summer', 'autumn', 'winter']
        x, y = pick(seasons + T['poem.x']), say('poem.y')
        p = POEMS[0].format(A=cap(x), B=y) if x not in seasons or R.random() < 0.3 else POEMS[1].format(a=x)
        return [(noise(ask.format(x=x)), p)]
    a = say('poem.answer')
    t = POEMS[pick([2, 3, 4])].format(xa=art(a), a=a, XA=cap(art(a)))
    many = a + 's' if a not in ('fox', 'mouse', 'deer', 'butterfly') else art(a)
    if R.random() < 0.85:
        return [(noise(ask.format(x=pick([art(a), art(a), art(a), many]))), t)]
    return [(noise(say('poem.ask4')), t)]


def made_up(country=False):
    """A word that nobody knows."""
    if R.random() < (0.5 if country else 0.6):
        return cap(pick(F['made_up_words'])) if country else pick(F['made_up_words'])
    consonants, vowels = list('bcdfgklmnprstvz'), list('aeiou')
    if country:
        return cap(''.join(pick(consonants) + pick(vowels) for _ in range(R.randrange(2, 4))) + pick(['nia', 'land', 'stan', 'ria', 'via']))
    end = lambda: pick(list('lmnrst')) if R.random() < 0.4 else ''
    return ''.join(pick(consonants) + pick(vowels) + end() for _ in range(R.randrange(2, 4)))


def never():
    """A question whose answer cannot be known, and the answer."""
    q, a = pick(UNK)
    q = pick(q)
    return q.format(city=pick(F['cities']), city2=pick(F['cities']), name=pick(F['names'])), a


def g_unsafe():
    q, a = pick(UNS)
    return [(noise(pick(q)), a)]


def filler():
    kinds = 'capital math define qa animal words talk colour dates fun list like'
    return KINDS[pick(kinds.split())]()[:1]


def g_memory():
    """the user says something about themself and asks for it later"""
    k = R.randrange(8)
    t = []
    if R.random() < 0.3:
        t += g_greet()
    if k <= 3:
        n = pick(F['names'])
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
    base = KINDS[pick('capital define qa math words animal colour howto'.split())]()
    (u, a), r = base[0], R.random()
    if r < 0.4:
        return base + [(noise(say('followup.ask')), a)]
    if r < 0.7:
        return base + [(noise(say('followup.ask2')), f'You asked: "{u}"')]
    return base + [(noise(say('followup.ask3')), pick(INT['sure'][1]))]


def g_passage():
    v, parts = S.play('passage')
    t, qs = v['t'], [[S.form.vformat(x, (), v) for x in row] for row in parts['ask']]
    sel = R.sample(qs, 1 if R.random() < 0.7 else 3)
    u = say('frame', t=t, q=sel[0][0])
    return [(noise(u, True) if R.random() < 0.3 else u, sel[0][1])] + [(noise(q), a) for q, a in sel[1:]]


WEIGHTS = {k: float(weight) for k, weight in rows('kinds')}
KINDS = {k: globals().get('g_' + k) or functools.partial(scene, k) for k in WEIGHTS}  # what code does not make is a scene


def kind():
    return R.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]


def convo():
    """-> src, system or None, turns"""
    r = R.random()
    if r < 0.035:  # a system prompt gives the assistant another name
        n = pick(F['names'])
        s = say('convo.system', n=n)
        t = g_greet() if R.random() < 0.4 else []
        t.append((noise(say('convo.ask')), say('convo.answer', n=n)))
        if R.random() < 0.4:
            t += KINDS[kind()]()
        return 'sysname', s, t
    if r < 0.06:  # a system prompt names the user
        n = pick(F['names'])
        s = say('convo.system2', n=n)
        t = [(noise(alt('Hello!/Hi./Hey there./Good morning.'), True), f'Hello, {n}! How can I help you?')] if R.random() < 0.6 else []
        t.append((noise(say('convo.ask2')), f'Your name is {n}.'))
        return 'sysuser', s, t
    if r < 0.08:  # one-word answers
        s = say('convo.system3')
        t = [turn for _ in range(pick([1, 1, 2])) for turn in scene('oneword')]
        return 'oneword', s, t
    k = kind()
    t = KINDS[k]()
    n = R.choices([0, 1, 2, 3, 4], [62, 17, 11, 6, 4])[0]
    for _ in range(n):
        x = KINDS[kind()]()
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
        WEIGHTS.update((k, float(v)) for k, v in (x.split('=') for x in a.weights.split(',')))
    write(a, 'syn/', convo, fixup)


if __name__ == '__main__':
    main()
