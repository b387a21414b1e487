#!/usr/bin/env python3
"""Writes exclude.txt: the user turns that stay out of the training data, because they are the tests. These are eval_prompts.json (60 conversations,
each with its rule: every regex of "all" must match the answer and none of "none" may, case does not matter), test_prompts.jsonl and
json_requests.txt (what evaluate.ts asks for JSON).

usage: make_prompts.py [FOLDER]"""

import json, os, sys

HERE = os.path.dirname(os.path.abspath(__file__))
prompts = json.load(open(HERE + '/eval_prompts.json'))
excluded = [m['content'].replace('\n', ' ') for p in prompts for m in p['messages'] if m['role'] == 'user' and len(m['content']) > 12]
excluded += [json.loads(line)['turns'][-1] for line in open(HERE + '/test_prompts.jsonl')]
excluded += open(HERE + '/json_requests.txt').read().splitlines()
open((sys.argv[1] if len(sys.argv) > 1 else '.') + '/exclude.txt', 'w').write('\n'.join(excluded) + '\n')
print(len(excluded), 'turns')
