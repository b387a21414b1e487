#!/usr/bin/env python3
"""Sentences of novels for the text-only decoder steps. Arguments: git clones (bare or not) of books of Standard Ebooks (github.com/standardebooks,
public domain). Chapters only; what P.good refuses and what shares six consecutive words with a test text stays out. Output: text/books.txt"""

import html, random, re, subprocess, sys
import paths
import text_more as T
import text_prep as P

FRONT = re.compile('colophon|imprint|uncopyright|titlepage|toc|loi|endnotes|dedication|epigraph')


def git(repo, *args):
    return subprocess.run(['git', '-C', repo, *args], capture_output=True, text=True, check=True).stdout


def paragraphs(repo):
    files = [f for f in git(repo, 'ls-tree', '-r', '--name-only', 'HEAD').split() if 'epub/text/' in f and not FRONT.search(f)]
    for f in files:
        for p in re.findall(r'<p>(.*?)</p>', git(repo, 'show', f'HEAD:{f}'), re.S):
            t = html.unescape(re.sub('<[^>]*>', '', p)).replace('\u2060', '').replace('\u200a', ' ')
            yield re.sub(r'\s+', ' ', t)


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
    free = T.free_of_tests()
    known = set(open('text/all.txt').read().split('\n'))
    lines = list(dict.fromkeys(t for repo in sys.argv[1:] for t in sentences(repo) if t not in known and free(t)))
    random.Random(13).shuffle(lines)
    with open('text/books.txt', 'w') as f:
        f.write('\n'.join(lines) + '\n')
    print(len(lines), 'sentences', lines[:: len(lines) // 8])


if __name__ == '__main__':
    main()
