#!/usr/bin/env python3
"""Collect English sentences (books + LJSpeech transcripts + generated everyday text).
Output: text/train.txt, text/eval.txt, text/eval_numbers.txt (one sentence per line, natural case/punctuation)."""

import gzip, os, random, re
import paths

random.seed(1)
T = os.path.join(paths.WORK, 'text')

FIX = {'\u2018': "'", '\u2019': "'", '\u201c': '"', '\u201d': '"', '\u2014': ', ', '\u2013': '-', '\u00a0': ' ', '\u2026': '...'}


def clean(s):
    for a, b in FIX.items():
        s = s.replace(a, b)
    s = s.replace('--', ', ').replace('_', '').replace('"', '').replace('...', '.')
    s = re.sub(r'\[[^\]]*\]|\([^)]*\)', '', s)
    s = re.sub(r'\s+', ' ', s)
    s = re.sub(r'\s+([,.;:!?])', r'\1', s)
    s = re.sub(r',\s*([,.;:!?])', r'\1', s)
    s = re.sub(r'^[\s\'\-,.;:!?]+', '', s).strip()
    return s


ABBR = r'(?<!Mr)(?<!Mrs)(?<!Dr)(?<!St)(?<!Prof)(?<!Rev)(?<!Ms)(?<!Esq)(?<!No)(?<!\b[A-Z])'


def split_sents(p):
    return re.split(ABBR + r'(?<=[.!?])[\'"\u201d\u2019]?\s+(?=[\'"\u201c\u2018]?[A-Z])', p)


OK = re.compile(r"^[A-Za-z][A-Za-z0-9 ,.;:!?'\-$%]*$")


def good(s, lo=12, hi=125):
    if not (lo <= len(s) <= hi) or not OK.match(s):
        return False
    w = s.split()
    if len(w) < 2 or any(len(x) > 16 for x in w):
        return False
    if sum(c.isupper() for c in s) > 0.12 * len(s) + 2:
        return False
    if re.search(r'\b[IVXLC]{2,}\b', s):
        return False
    return s[-1].isalnum() or s[-1] in '.!?;:,'


def clauses(s, hi=125):
    """Cut an over-long sentence at ; : , into pieces of at most hi characters."""
    out, cur = [], ''
    for part in re.split(r'(?<=[;:,])\s+', s):
        if cur and len(cur) + len(part) + 1 > hi:
            out.append(cur)
            cur = part
        else:
            cur = (cur + ' ' + part).strip()
    out.append(cur)
    return out


def book(path, n):
    raw = gzip.open(f'{paths.DATA}/text/{path}.txt.gz', 'rt', encoding='utf-8', errors='replace').read()
    res = []
    for para in re.split(r'\n\s*\n', raw):
        for s in split_sents(re.sub(r'\s+', ' ', para)):
            s = clean(s)
            for c in [s] if len(s) <= 125 else clauses(s):
                c = c.rstrip(';:,').strip()
                if not c:
                    continue
                c = c[0].upper() + c[1:]
                if c[-1] not in '.!?':
                    c += '.'
                if good(c):
                    res.append(c)
    random.shuffle(res)
    return res[:n]


def lj():
    res = []
    for l in gzip.open(f'{paths.DATA}/text/ljspeech_sentences.txt.gz', 'rt', encoding='utf-8'):
        for c in split_sents(clean(l.rstrip('\n'))):
            for d in clauses(c):
                d = d.rstrip(';:,').strip()
                if d:
                    d = d[0].upper() + d[1:]
                    if d[-1] not in '.!?':
                        d += '.'
                    if good(d):
                        res.append(d)
    random.shuffle(res)
    return res


# ---------------------------------------------------------------- generated everyday text
C = random.choice
NAMES = "James Mary John Linda Robert Susan Michael Karen David Nancy William Lisa Richard Betty Joseph Helen Thomas Sandra Charles Donna Daniel Carol Matthew Ruth Anthony Sharon Mark Laura Paul Sarah Steven Kim Andrew Emma George Anna Kevin Alice Brian Julia Edward Grace Peter Rose Frank Emily Scott Olivia Eric Sophia Adam Jane Henry Lucy Oliver Ella Jack Maria Sam Kate Max Zoe Leo Nina Tom Amy Ben Molly Chris Hannah".split(
)
CITY = "London,Paris,Berlin,Tokyo,New York,Chicago,Boston,Seattle,Denver,Dallas,Houston,Miami,Toronto,Sydney,Madrid,Rome,Vienna,Dublin,Oslo,Moscow,Beijing,Cairo,Lima,Austin,Atlanta,Portland,Phoenix,San Francisco,Los Angeles,Washington,Manchester,Glasgow,Cambridge,Oxford,Amsterdam,Zurich,Prague,Lisbon,Athens,Mumbai,Delhi".split(
    ',')
MON = "January February March April May June July August September October November December".split()
DAY = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
NOUN = "car house book phone computer window door table chair river garden school office kitchen bottle camera ticket letter picture message meeting story song movie project report answer question problem idea street market doctor teacher student friend child dog cat bird horse tree flower mountain beach train bus plane boat bridge road shop store restaurant hotel hospital church museum library park city country family mother father sister brother neighbor box bag coat shirt shoe hat key lamp clock watch mirror pencil paper newspaper magazine computer keyboard screen battery engine wheel machine robot planet star moon sun cloud storm wind rain snow fire light shadow wall floor roof room bed sofa cup plate knife spoon bowl apple orange banana bread cheese butter milk coffee tea water juice soup rice chicken fish egg cake sugar salt pepper".split(
)
ADJ = "big small old new red blue green black white yellow long short tall hot cold warm dark bright heavy light soft hard clean dirty dry wet fast slow quick early late easy difficult simple strange beautiful ugly cheap expensive happy sad angry tired hungry busy quiet loud strong weak young rich poor empty full open closed broken perfect strange famous modern ancient wooden friendly dangerous safe important different similar sweet bitter fresh".split(
)
VERB = "see find buy sell open close clean fix move bring take carry watch read write send build break paint draw check use hide keep lose want need like love hate remember forget change share leave visit choose make get show".split(
)
ADV = "today,tomorrow,tonight,this morning,this afternoon,this evening,next week,right now,later,soon,as soon as possible,every day,once a week,in the morning,after lunch,before dinner,on the weekend,in a few minutes,again,at home,at work,at school,downstairs,outside".split(
    ',')
FOOD = "pizza,pasta,salad,sandwiches,chicken soup,fried rice,scrambled eggs,chocolate cake,ice cream,pancakes,a cup of coffee,a glass of water,green tea,orange juice,toast with butter,roast beef,grilled fish,apple pie".split(
    ',')
PLACE = "the kitchen,the office,the garden,the station,the airport,the supermarket,the living room,the library,the park,the beach,the hospital,the school,the museum,the hotel,the bank,the post office,the corner,the city center,the basement,the parking lot".split(
    ',')
TOPIC = "the weather,the news,machine learning,the history of Rome,quantum physics,the stock market,football,basketball,classical music,space travel,climate change,the ocean,dinosaurs,volcanoes,computer graphics,neural networks,web browsers,programming languages,healthy food,world history,the solar system,artificial intelligence,speech recognition,language models,graphics cards".split(
    ',')
APP = "music player,calendar,camera,browser,calculator,timer,email,settings,map,terminal,text editor,photo album,weather app,alarm".split(
    ',')
ONES = "zero one two three four five six seven eight nine ten eleven twelve".split()


def num():
    k = random.random()
    if k < 0.3:
        return str(random.randint(10, 99))
    if k < 0.5:
        return str(random.randint(100, 999))
    if k < 0.62:
        return str(random.randint(1100, 9999))
    if k < 0.7:
        return str(random.randint(1, 99) * 1000)
    if k < 0.76:
        return f'{random.randint(0, 99)}.{random.randint(1, 9)}'
    return C(ONES[2:])


def year():
    return str(C([random.randint(1700, 1999), random.randint(1900, 1999), random.randint(2010, 2030)]))


def time():
    return C([
        f'{random.randint(1, 12)}:{C(["15", "30", "45", "10", "20", "05", "50", "25", "40", "35", "55"])}',
        f"{random.randint(1, 12)} o'clock", f'{random.randint(1, 12)} {C(["am", "pm"])}'
    ])


def date():
    return C([
        f'{C(MON)} {random.randint(1, 30)}', f'{C(MON)} {random.randint(1, 30)}, {year()}',
        C(DAY), f'{C(DAY)}, {C(MON)} {random.randint(1, 30)}'
    ])


def money():
    return C([
        f'${random.randint(2, 99)}', f'${random.randint(1, 9) * 100}', f'{num()} dollars', f'{random.randint(2, 99)} cents',
        f'{num()} euros'
    ])


def the():
    return C([
        f'the {C(NOUN)}', f'the {C(ADJ)} {C(NOUN)}', f'my {C(NOUN)}', f'your {C(NOUN)}', f'that {C(ADJ)} {C(NOUN)}', f'his {C(NOUN)}',
        f'her {C(ADJ)} {C(NOUN)}', f'our {C(NOUN)}', f'this {C(NOUN)}'
    ])


def numeric():
    return C([
        lambda: f'The answer is {num()}.', lambda: f'It costs {money()}.', lambda: f'The meeting is at {time()}.',
        lambda: f'I was born in {year()}.', lambda: f'My birthday is {C(MON)} {random.randint(1, 30)}.',
        lambda: f'There are {num()} people in {C(PLACE)}.', lambda: f'We need {num()} more {C(NOUN)}s.',
        lambda: f'The temperature is {random.randint(-20, 110)} degrees.', lambda: f'The train leaves at {time()} on {date()}.',
        lambda: f'What is {num()} plus {num()}?', lambda: f'What is {num()} times {num()}?',
        lambda: f'{random.randint(10, 99)} minus {num()} equals {num()}.',
        lambda: f'Please call me at {" ".join(C(ONES[:10]) for _ in range(7))}.',
        lambda: f'The code is {" ".join(C(ONES[:10]) for _ in range(random.randint(3, 5)))}.'.replace('  ', ' '),
        lambda: f'Set a timer for {num()} minutes.', lambda: f'Set an alarm for {time()}.', lambda: f'Wake me up at {time()} {C(ADV)}.',
        lambda: f'About {random.randint(1, 99)}% of the {C(NOUN)}s are {C(ADJ)}.',
        lambda: f'It was built in {year()} and sold for {money()}.', lambda: f'He is {random.randint(2, 99)} years old.',
        lambda: f'She ran {num()} miles in {num()} minutes.', lambda: f'Chapter {random.randint(1, 40)}, page {random.randint(2, 400)}.',
        lambda: f'{C(CITY)} is {num()} miles from {C(CITY)}.', lambda: f'The {C(NOUN)} weighs {num()} pounds.',
        lambda: f'I have {num()} {C(NOUN)}s and {num()} {C(NOUN)}s.',
        lambda: f'{" ".join(C(ONES[:10]) for _ in range(random.randint(3, 6)))}'.capitalize() + '.',
        lambda: f'Remind me on {date()} at {time()}.', lambda: f'The battery is at {random.randint(1, 100)}%.',
        lambda: f'Turn the volume to {random.randint(1, 100)}.'
    ])()


def everyday():
    n, n2, v, t, t2 = C(NAMES), C(NAMES), C(VERB), the(), the()
    return C([
        lambda: f'Can you {v} {t} {C(ADV)}?', lambda: f'Please {v} {t}.', lambda: f'{n} will {v} {t} {C(ADV)}.',
        lambda: f'I want to {v} {t}.', lambda: f"I don't want to {v} {t} {C(ADV)}.", lambda: f'Where is {t}?',
        lambda: f'Who put {t} in {C(PLACE)}?', lambda: f'Did you {v} {t}?', lambda: f'Why did {n} {v} {t}?',
        lambda: f'When can we {v} {t}?', lambda: f'How do I {v} {t}?', lambda: f'{n} and {n2} are going to {C(PLACE)} {C(ADV)}.',
        lambda: f"Let's have {C(FOOD)} for {C(['breakfast', 'lunch', 'dinner'])}.", lambda: f'I would like {C(FOOD)}, please.',
        lambda: f'Tell me about {C(TOPIC)}.', lambda: f'What do you know about {C(TOPIC)}?',
        lambda: f'Write a {C(["poem", "story", "song", "letter", "short summary"])} about {t}.',
        lambda: f'Explain {C(TOPIC)} in simple words.', lambda: f'Open the {C(APP)}.', lambda: f'Close the {C(APP)} and open the {C(APP)}.',
        lambda: f'Turn {C(["on", "off"])} the {C(["light", "lights", "television", "radio", "fan", "heater", "music"])} in {C(PLACE)}.',
        lambda: f'What is the weather like in {C(CITY)} {C(["today", "tomorrow", "on " + C(DAY)])}?',
        lambda: f'It is {C(ADJ)} and {C(ADJ)} in {C(CITY)} {C(["today", "this week", "in " + C(MON)])}.', lambda:
        (f'Send a message to {n} and say {C(["hello", "I am late", "happy birthday", "thank you", "good night", "I will call you back"])}.'
         ), lambda: f'Call {n}.', lambda: f'Hello, my name is {n}.', lambda: f'{n} lives in {C(CITY)}.', lambda:
        (f'{t} is {C(ADJ)}.'.capitalize() if False else f'{t[0].upper() + t[1:]} is {C(["very ", "too ", "quite ", "not ", ""])}{C(ADJ)}.'),
        lambda: f'{t[0].upper() + t[1:]} was in {C(PLACE)}.', lambda: f'I think {t} is {C(ADJ)}, but {t2} is {C(ADJ)}.',
        lambda: f"I can't {v} {t} because {t2} is {C(ADJ)}.", lambda: f'If you {v} {t}, I will {C(VERB)} {t2}.', lambda:
        (f'{C(["Yes", "No", "Okay", "Well", "Sure", "Maybe", "Thanks", "Sorry"])}, {C(["I will", "we can", "they should", "you must", "I could"])} {v} {t}.'
         ), lambda: f'How far is {C(CITY)} from {C(CITY)}?',
        lambda: f'We drove from {C(CITY)} to {C(CITY)} {C(["last week", "yesterday", "in the rain", "at night"])}.',
        lambda: f'{n} said that {t} is {C(ADJ)}.', lambda:
        (f'What is the capital of {C(["France", "Spain", "Italy", "Germany", "Japan", "China", "India", "Brazil", "Canada", "Mexico", "Egypt", "Kenya", "Peru", "Norway", "Sweden", "Poland", "Greece", "Turkey"])}?'
         ), lambda: f'Play some {C(["music", "jazz", "rock music", "classical music", "pop songs"])} {C(ADV)}.',
        lambda: f'{C(["Good morning", "Good evening", "Hi", "Hello", "Hey"])}, {n}. How are you?',
        lambda: f'Thank you for {C(["your help", "the coffee", "coming", "the information", "your time", "the gift"])}.', lambda:
        (f'Translate this {C(["sentence", "word", "page", "message"])} into {C(["French", "German", "Spanish", "Japanese", "Chinese", "Italian", "Russian"])}.'
         ), lambda:
        (f'This {C(["program", "model", "page", "browser", "computer"])} runs {C(["locally", "very fast", "slowly", "in the browser", "on the graphics card", "without the internet"])}.'
         ), lambda: f'{n} forgot to {v} {t}.', lambda: f'They decided to {v} {t} {C(ADV)}.',
        lambda: f'The {C(ADJ)} {C(NOUN)} and the {C(ADJ)} {C(NOUN)} are in {C(PLACE)}.', lambda: f'Nobody could {v} {t}.',
        lambda: f'Have you ever been to {C(CITY)}?'
    ])()


def gen(fn, n):
    s = set()
    while len(s) < n:
        x = fn()
        x = x[0].upper() + x[1:]
        if len(x) <= 125:
            s.add(x)
    return sorted(s)


if __name__ == '__main__':
    parts = {
        'bronte': book('bronte', 20000), 'darwin': book('darwin', 14000), 'lj': lj()[:12000], 'everyday': gen(everyday, 12000),
        'numeric': gen(numeric, 6000)
    }
    ev, evn, tr = [], [], []
    for k, v in parts.items():
        random.shuffle(v)
        print(k, len(v), v[:3])
        if k == 'numeric':
            evn += v[:100]
            tr += v[100:]
        else:
            ev += v[:100]
            tr += v[100:]
    ev_set = set(ev) | set(evn)
    tr = [x for x in dict.fromkeys(tr) if x not in ev_set]
    random.shuffle(tr)
    random.shuffle(ev)
    open(f'{T}/train.txt', 'w').write('\n'.join(tr) + '\n')
    open(f'{T}/eval.txt', 'w').write('\n'.join(ev) + '\n')
    open(f'{T}/eval_numbers.txt', 'w').write('\n'.join(evn) + '\n')
    print(len(tr), 'train', len(ev), 'eval', sum(map(len, tr)) / len(tr), 'chars/sentence')
