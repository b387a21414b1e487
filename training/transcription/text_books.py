#!/usr/bin/env python3
"""Sentences of novels for the text-only decoder steps. Arguments: clones of books of Standard Ebooks (github.com/standardebooks,
public domain). Chapters only; what P.good refuses and what shares six consecutive words with a test text stays out. Output: text/books.txt"""

import glob, html, os, random, re, sys
import paths  # noqa: F401 (enters the work folder)
import text_more as T
import text_prep as P

FRONT = re.compile('colophon|imprint|uncopyright|titlepage|toc|loi|endnotes|dedication|epigraph')


def paragraphs(clone):
    for f in sorted(glob.glob(clone + '/src/epub/text/*')):
        for p in re.findall(r'<p>(.*?)</p>', open(f, encoding='utf-8').read(), re.S) if not FRONT.search(os.path.basename(f)) else []:
            yield re.sub(r'\s+', ' ', html.unescape(re.sub('<[^>]*>', '', p)).replace('\u2060', '').replace('\u200a', ' '))


def sentences(repo):
    for p in paragraphs(repo):
        for s in P.split_sents(P.clean(p)):
            for c in P.clauses(s):
                c = c.strip(" ';:,-")
                if c:
                    c = T.spell(T.cap(c)) + ('' if c[-1] in '.!?' else '.')
                    if P.good(c, 12, 110) and not re.search(r'\d|\$|%', c):
                        yield c


def main():
    clones = [os.path.abspath(c) for c in sys.argv[1:]]
    free, known = T.free_of_tests(), set(open('text/all.txt').read().split('\n'))
    lines = list(dict.fromkeys(t for clone in clones for t in sentences(clone) if t not in known and free(t)))
    random.Random(13).shuffle(lines)
    P.write('books', lines)
    print(len(lines), 'sentences', lines[:4])


if __name__ == '__main__':
    main()
