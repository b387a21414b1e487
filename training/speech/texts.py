#!/usr/bin/env python3
"""Build the sentence list (data/texts.tsv: id <tab> text).

Plain words only (digits are spelled out here) so that every teacher and the
phonemizer read the same words.  Sources: public-domain prose under $PARLEY_DATA/text
plus generated everyday/assistant sentences."""

import gzip, os, random, re

ROOT = os.path.abspath(os.environ.get("PARLEY_WORK", "work"))
random.seed(7)

DATA = os.environ.get("PARLEY_DATA", "../../../shared/data")


def show(name):
    p = DATA + "/text/" + name + ".txt.gz"
    return gzip.open(p, "rt", encoding="utf8", errors="ignore").read() if os.path.exists(p) else ""


ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split(
)
TENS = "zero ten twenty thirty forty fifty sixty seventy eighty ninety".split()


def words(n):
    if n < 20:
        return ONES[n]
    if n < 100:
        return TENS[n // 10] + ("" if n % 10 == 0 else " " + ONES[n % 10])
    if n < 1000:
        return ONES[n // 100] + " hundred" + ("" if n % 100 == 0 else " and " + words(n % 100))
    return words(n // 1000) + " thousand" + ("" if n % 1000 == 0 else " " + words(n % 1000))


ORD = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth".split(
)
MONTH = "January February March April May June July August September October November December".split()
DAY = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
THING = "book chair window garden picture ticket bottle camera jacket phone letter bicycle computer sandwich pillow measure treasure blanket mirror thermometer orange machine engine church judge vision garage thing path bath tooth voice choice boy toy house mouse cow cloud bird girl world nurse ship shop sheep foot wood pool moon fish dish bridge village journey giraffe yacht onion youth zebra zoo cheese eagle ocean".split(
)
ADJ = "new old small large blue green yellow heavy quiet bright simple strange useful broken wonderful early late cheap careful usual precious thick thin rough smooth sharp loud easy young joyful pleasant".split(
)
PLACE = "the kitchen,the station,the library,the office,the park,the museum,the airport,the village,the university,the hospital,the beach,the theatre,Paris,Sydney,London,New York,Tokyo,the mountains,the river,the garage".split(
    ",")
NAME = "Anna,George,Maria,Peter,Sophie,James,Lucy,Henry,Olivia,Thomas,Emma,David,Joyce,Ruth,Hugh,Chloe,Joshua,Beth,Keith,Zoe".split(",")
VERB = "open,close,carry,find,measure,paint,clean,move,borrow,choose,watch,use,fix,bring,change,describe,explain,replace,push,pull".split(
    ",")
TOPIC = "the weather,the solar system,modern art,the history of music,photosynthesis,machine learning,the French Revolution,quantum physics,healthy food,the stock market,ancient Egypt,the human brain,renewable energy,good manners,sharks,volcanoes,the theory of evolution,the internet".split(
    ",")


def gen():
    r = random.choice
    n = random.randint
    T = [
        lambda: "Please %s the %s %s before %s." % (r(VERB), r(ADJ), r(THING), r(DAY)), lambda: "Can you %s the %s in %s?" %
        (r(VERB), r(THING), r(PLACE)), lambda: "The meeting is on %s the %s of %s at %s thirty." %
        (r(DAY), r(ORD), r(MONTH), words(n(1, 12))), lambda: "It costs %s dollars and %s cents." % (words(n(2, 999)), words(n(2, 99))),
        lambda: ("%s has %s %s %ss." % (r(NAME), words(n(2, 60)), r(ADJ),
                                        r("book chair window garden picture ticket bottle camera letter computer pillow mirror".split()))),
        lambda: "What is the capital of %s?" % r("France,Germany,Japan,Australia,Canada,Brazil,Egypt,Norway,Thailand,Kenya".split(",")),
        lambda: "Where did %s put the %s %s?" % (r(NAME), r(ADJ), r(THING)), lambda: "I would like a %s %s, please." % (r(ADJ), r(THING)),
        lambda: "The temperature will reach %s degrees in %s." % (words(n(1, 45)), r(PLACE)),
        lambda: "Here is a short explanation of %s." % r(TOPIC), lambda: "Tell me something interesting about %s." % r(TOPIC),
        lambda: "Your order number is %s." % " ".join(ONES[n(0, 9)] for _ in range(n(4, 7))), lambda: "%s plus %s equals %s." % (
            (lambda a, b: (words(a).capitalize(), words(b), words(a + b)))
            (n(1, 99), n(1, 99))), lambda: "In %s %s, %s moved to %s." % (r(["eighteen", "nineteen"]), words(n(10, 99)), r(NAME), r(PLACE)),
        lambda: "I'm sorry, I don't know the answer to that question about %s." % r(TOPIC), lambda: "Sure, I can help you %s the %s." %
        (r(VERB), r(THING)), lambda: "How long does it take to %s a %s %s?" % (r(VERB), r(ADJ), r(THING)),
        lambda: "Turn %s the lights in %s, and %s the %s." % (r(["on", "off"]), r(PLACE), r(VERB), r(THING)),
        lambda: "%s said that the %s was %s, but %s disagreed." % (r(NAME), r(THING), r(ADJ), r(NAME)), lambda:
        ("The train to %s leaves at %s %s from platform %s." %
         (r(PLACE[12:17]), words(n(1, 12)), r("fifteen twenty thirty forty".split()), words(n(1, 20)))), lambda:
        ("Yes, the %s is %s than the %s." %
         (r(THING), r("bigger smaller older newer better worse cheaper heavier".split()), r(THING))), lambda: "Why is the %s so %s today?" %
        (r(THING), r(ADJ)), lambda: "There are %s students and %s teachers at %s." % (words(n(100, 2999)), words(n(5, 99)), r(PLACE)),
        lambda: "First, %s the %s; then %s the %s." % (r(VERB), r(THING), r(VERB), r(THING)),
        lambda: r(["Hello, %s.", "Good morning, %s!", "Thank you, %s.", "Goodbye, %s.", "How are you, %s?", "Welcome back, %s!"]) % r(NAME),
        lambda: "%s, %s, %s." % (r(THING).capitalize(), r(THING), r(THING)), lambda: "A %s %s and a %s %s." %
        (r(ADJ), r(THING), r(ADJ), r(THING)), lambda: "The %s is %s." % (r(THING), r(ADJ))
    ]
    return r(T)()


def sents(txt):
    txt = re.sub(r"\s+", " ", txt)
    for s in re.split(r'(?<=[.!?])["”\']?\s+', txt):
        yield s.strip(' "“”\'')


OK = re.compile(r"^[A-Z][A-Za-z ,;:'.!?\-]+[.!?]$")
ABBR = re.compile(r"\b(Mr|Mrs|Dr|St|Esq|vol|Vol|Co|Jr|No|i\.e|e\.g|viz|etc|[A-Z])\.|[A-Z]{2,}|\b[B-HJ-Z]\b|--")
BAD = re.compile(
    r"^(?!(?:And|But|Yes|No|Well|Oh|So|Now|Then|Here|There|If|For|Still|Indeed|However|Thus|Hence)\b)[A-Z]\w+, |\b(of|the|in|on|a|an|by|to|with|from)\.$|, (on|in|of) the \w+"
)


def good(s, lo=18, hi=92):
    return not BAD.search(s) and lo <= len(s) <= hi and OK.match(s) and not ABBR.search(s) and s.count(" ") >= 2 and "." not in s[:-1]


pool = []
for name in ["bronte", "darwin"]:
    ss = [s for s in sents(show(name)) if good(s)]
    random.shuffle(ss)
    pool += ss[:3000]
lj = []
for t in show("ljspeech_sentences").splitlines():
    t = t.strip()
    if not t:
        continue
    t = t[:1].upper() + t[1:]
    if t[-1:] not in ".!?":
        t = t.rstrip(",;: -") + "."
    if good(t):
        lj.append(t)
random.shuffle(lj)
pool += lj[:2500]
pool = list(dict.fromkeys(pool))
random.shuffle(pool)
ev = list(dict.fromkeys(gen() for _ in range(7000)))
random.shuffle(ev)
n_lit, n_ev = 3400, 2600
out = pool[:n_lit] + ev[:n_ev]
random.shuffle(out)
os.makedirs(ROOT + "/data", exist_ok=True)
with open(ROOT + "/data/texts.tsv", "w") as f:
    for i, t in enumerate(out):
        t = t.replace(" -", ",").replace("-", " ").replace(":", ",")
        f.write("%05d\t%s\n" % (i, t))
print(len(pool), len(lj), len(ev), "->", len(out), "chars", sum(map(len, out)) / len(out))
