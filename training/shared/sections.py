"""Text files of named lists, and sentences whose gaps are filled from them at random."""

import json, re


class Sections(dict):
    """section -> its lines. '[key]' begins a section, '[key: words]' one whose items are parted by spaces and line ends;
    a line in double quotes is a JSON string; one that begins with '# ' is a comment."""

    def __init__(self, path):
        super().__init__()
        items, words = [], False
        for line in open(path, encoding='utf-8').read().split('\n'):
            head = re.fullmatch(r'\[([\w.]+)(: words)?\]', line)
            if head:
                items, words = self.setdefault(head[1], []), bool(head[2])
            elif line and self and line[:2] != '# ':
                items.extend(line.split() if words else [json.loads(line) if line[0] == '"' else line])

    def rows(self, key):
        """The lines of a section as tuples of their columns."""
        return [tuple(line.split('\t')) for line in self[key]]


ONES = ('zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen '
        'nineteen').split()
TENS = 'zero ten twenty thirty forty fifty sixty seventy eighty ninety'.split()


def words(n, link=''):
    """English words of 0 <= n < 10^9; link: 'and ' for "a hundred and one"."""
    if n < 20:
        return ONES[n]
    if n < 100:
        return TENS[n // 10] + (' ' + ONES[n % 10] if n % 10 else '')
    for unit, name in ((1000000, 'million'), (1000, 'thousand'), (100, 'hundred')):
        if n >= unit:
            rest = (' ' + (link if unit == 100 else '') + words(n % unit, link)) if n % unit else ''
            return f'{words(n // unit, link)} {name}{rest}'


class Slots:
    """Fills sentences from left to right: '{name}' with a value, what a function returns or a line of a section, '{2..9}' with a number,
    '{4..7 name}' with so many in a row, '{name:form}' with another form of it; of '[a|b]' one is taken when all in it is filled."""

    def __init__(self, sections, random, functions={}, forms={}):
        self.sections, self.random, self.functions, self.forms = sections, random, functions, {'cap': cap, **forms}

    def draw(self, slot, values):
        name, _, form = slot.partition(':')
        span = re.fullmatch(r'(-?\d+)\.\.(\d+)( \w+)?', name)
        if span and span[3]:
            value = ' '.join(self.draw(span[3][1:], values) for _ in range(self.random.randint(int(span[1]), int(span[2]))))
        elif span:
            value = self.random.randint(int(span[1]), int(span[2]))
        elif name in values:
            value = values[name]
        elif name in self.functions:
            value = self.functions[name]()
        else:  # a section of one line is that line
            lines = self.sections[name]
            value = self.fill(lines[0] if len(lines) == 1 else self.random.choice(lines), **values)
        return str(self.forms[form](value) if form else value)

    def fill(self, text, **values):
        open_ = ['']
        for part in re.findall(r'[\[\]]|\{[^}]*\}|[^\[\]{]+', text):
            if part == '[':
                open_.append('')
            elif part == ']':
                options = open_.pop().split('|')
                open_[-1] += self.random.choice(options)
            else:
                open_[-1] += self.draw(part[1:-1], values) if part[0] == '{' else part
        return open_[0]


def cap(text):
    return text[:1].upper() + text[1:]
