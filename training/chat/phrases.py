"""What the generators share: their random numbers, their small word functions the templates of data/*.txt and their command line."""

import argparse, json, random, re, string
import paths
from shared.sections import Sections, cap

R = random.Random(1)


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


def low(s):
    return s[:1].lower() + s[1:]


def art(n):
    return ('an ' if n[0].lower() in 'aeiou' else 'a ') + n


def join(xs):
    xs = list(xs)
    return xs[0] if len(xs) == 1 else ', '.join(xs[:-1]) + ' and ' + xs[-1]


class Phrases(Sections):
    """data/NAME.txt"""

    def __init__(self, name):
        super().__init__(f'{paths.HERE}/data/{name}.txt')

    def say(self, key, *args, **names):
        """One line, drawn at random, with {names} filled in."""
        line = pick(self[key])
        return line.format(*args, **names) if args or names else line


def numbers(a, sign, b):
    """The sum, difference or product of two whole numbers."""
    a, b = int(a), int(b)
    return a + b if sign == '+' else a - b if sign == '-' else a * b


class Form(string.Formatter):
    """Templates: '{name}', '{name:form.form}' (the word brought into one form after the other) and '{a+b}' ('-', '*'; names or digits)."""

    def __init__(self, forms):
        self.forms = {'a': art, 'cap': cap, 'low': low, 'upper': str.upper, 'lower': str.lower, **forms}

    def get_field(self, field, args, values):
        sum_ = re.fullmatch(r'(\w+)([-+*])(\w+)', field)
        return (numbers(values.get(sum_[1], sum_[1]), sum_[2], values.get(sum_[3], sum_[3])) if sum_ else values[field]), field

    def format_field(self, value, forms):
        for form in filter(None, forms.split('.')):
            value = self.forms[form](value)
        return str(value)


class Stage:
    """Plays the sections of Phrases in which values are drawn, in the order of their lines:

    x = SOURCE          one of a list by its name, of '2..9', of 'this|that' (filled in), or what a function returns: 'name' or 'name(x, y)'
    x = list - y        the same without y; 'x y = 2 of list' draws two; 'x y = list' takes the columns of one row apart (tab, '/' or space)
    x = @key            a line of another section, filled in
    x = > TEMPLATE      filled in, then a choice made in every '[a|b]'
    x = 0.3: A || B     A with this chance, else B, filled in
    x = by r: 0.3 A, B  A where r is below, else B; "by chance" draws the number. 'go' names the section that comes next
    + TEMPLATE or @key  one more of v['lines'], as after '>'
    tag<TAB>TEMPLATE... templates for whoever plays the section
    """

    def __init__(self, phrases, lists, functions, forms, acts={}):
        """acts: {tag: what is done with the values and the columns, as soon as the line comes}"""
        self.phrases, self.lists, self.functions, self.form, self.acts = phrases, lists, functions, Form(forms), acts

    def fill(self, template, v):
        whole = re.fullmatch(r'\{(\w+)\}', template)
        return v[whole[1]] if whole else self.form.vformat(template, (), v)

    def pool(self, source, v):
        name, *without = source.split(' - ') if re.fullmatch(r'[\w.]+( - \w+)*', source) else [source]
        span = re.fullmatch(r'(\d+)\.\.(\d+)', name)
        items = range(int(span[1]), int(span[2]) + 1) if span else v[name] if name in v else self.lists.get(name) or self.phrases.get(name)
        if items is None:
            return [self.form.vformat(item, (), v) for item in source.split('|')]
        return [x for x in items if not any(v[y] in (x.split('\t') if isinstance(x, str) else (x, )) for y in without)] if without else items

    def draw(self, source, v):
        if source[0] == '@':
            return self.fill(pick(self.phrases.get(source[1:]) or self.lists[source[1:]]), v)
        if source[0] == '>':
            return ex(self.form.vformat(source[2:], (), v))
        call = re.fullmatch(r'(\w+)(?:\(([\w, ]+)\))?', source)
        if call and call[1] in self.functions:
            return self.functions[call[1]](*[v[x] for x in re.findall(r'\w+', call[2] or '')])
        many = re.fullmatch(r'(\d) of (.+)', source)
        if many:
            return R.sample(self.pool(many[2], v), int(many[1]))
        chance = re.fullmatch(r'([.\d]+): (.*) \|\| (.*)', source)
        if chance:
            return self.form.vformat(chance[2] if R.random() < float(chance[1]) else chance[3], (), v)
        by = re.fullmatch(r'by (\w+): (.*)', source)
        if by:
            r = R.random() if by[1] == 'chance' else v[by[1]]
            return next(way[-1] for way in map(str.split, by[2].split(', ')) if len(way) == 1 or r < float(way[0]))
        return pick(self.pool(source, v))

    def play(self, key, **v):
        """-> the values drawn, {tag: [its columns, for every line]}"""
        parts, v = {}, {'lines': [], **v}
        for line in self.phrases[key]:
            tag, *columns = line.split('\t')
            if tag in self.acts:
                self.acts[tag](v, *columns)
            elif columns:
                parts.setdefault(tag, []).append(columns)
            elif line[:2] == '+ ':
                template = pick(self.phrases[line[3:]]) if line[2] == '@' else line[2:]
                v['lines'].append(ex(self.form.vformat(template, (), v)))
            else:
                names, source = line.split(' = ', 1)
                value, names = self.draw(source, v), names.split()
                if len(names) > 1 and isinstance(value, str):
                    value = value.split('\t' if '\t' in value else '/' if '/' in value else None)
                v.update(zip(names, value) if len(names) > 1 else {names[0]: value})
        return self.play(v.pop('go'), **v) if 'go' in v else (v, parts)


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
