"""What the generators share: their random numbers, their small word functions the templates of data/*.txt and their command line."""

import argparse, json, os, random, re

R = random.Random(1)
DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'data')


def pick(xs):
    return xs[R.randrange(len(xs))]


def ex(s):
    """'[a|b] c' -> 'a c' or 'b c'"""
    while '[' in s:
        s = re.sub(r'\[([^\[\]]*)\]', lambda m: pick(m.group(1).split('|')), s)
    return re.sub(' +', ' ', s).strip()


def alt(s):
    """'a/b/c' -> one of them"""
    return pick(s.split('/'))


def cap(s):
    return s[:1].upper() + s[1:]


def art(n):
    return ('an ' if n[0].lower() in 'aeiou' else 'a ') + n


def join(xs):
    xs = list(xs)
    return xs[0] if len(xs) == 1 else ', '.join(xs[:-1]) + ' and ' + xs[-1]


class Phrases(dict):
    """data/NAME.txt: section -> its lines. '[key]' begins a section, '[key: words]' one whose items are parted by spaces and line ends;
    a line in double quotes is a JSON string; '#' begins a comment above the first section."""

    def __init__(self, name):
        super().__init__()
        items, words = [], False
        for line in open(f'{DATA}/{name}.txt', encoding='utf-8').read().split('\n'):
            head = re.fullmatch(r'\[([\w.]+)(: words)?\]', line)
            if head:
                items, words = self.setdefault(head[1], []), bool(head[2])
            elif line and self:
                items.extend(line.split() if words else [json.loads(line) if line[0] == '"' else line])

    def rows(self, key):
        """The lines of a section as tuples of their columns."""
        return [tuple(line.split('\t')) for line in self[key]]

    def say(self, key, *args, **names):
        """One line, drawn at random, with {names} filled in."""
        line = pick(self[key])
        return line.format(*args, **names) if args or names else line

    def say_row(self, key, **names):
        """The columns of one line, drawn at random, each with {names} filled in."""
        return tuple(column.format(**names) for column in pick(self.rows(key)))


def norm(s):
    return re.sub(r'[^a-z0-9+*/×÷-]+', ' ', s.lower()).strip()


def arguments(n, seed):
    """The options that every generator has, with its own number of dialogues and seed."""
    ap = argparse.ArgumentParser()
    ap.add_argument('--n', type=int, default=n)
    ap.add_argument('--seed', type=int, default=seed)
    ap.add_argument('--out', required=True)
    ap.add_argument('--exclude-prompts', help='text file, one prompt a line: no dialogue may hold one of these as a user turn')
    ap.add_argument('--exclude-file', action='append', default=[], help='jsonl of dialogues that must not be produced again (for a held-out set)')
    return ap


def write(a, source, draw, clean=lambda text: text):
    """Writes a.n dialogues to a.out. draw() -> kind, system prompt or None, [(user, assistant), ...]; every turn goes through clean()."""
    ban = {norm(l) for l in open(a.exclude_prompts)} if a.exclude_prompts else set()
    seen = {json.dumps(json.loads(l)['messages']) for f in a.exclude_file for l in open(f)}
    n = dup = 0
    with open(a.out, 'w') as out:
        while n < a.n:
            kind, system, turns = draw()
            if any(norm(u) in ban for u, _ in turns):
                continue
            ms = [{'role': 'system', 'content': system}] if system else []
            for u, v in turns:
                ms += [{'role': 'user', 'content': clean(u)}, {'role': 'assistant', 'content': clean(v)}]
            if seen and json.dumps(ms) in seen:
                dup += 1
                continue
            out.write(json.dumps({'src': source + kind, 'messages': ms}, ensure_ascii=False) + '\n')
            n += 1
    print(f'{n} dialogues, {dup} left out as already seen')
