"""Writes blind_prompts.json: 30 further prompts, written after training ended and graded once, never used to change the data."""

import json, sys

P = []


def t(cat, turns, all=(), none=(), system=None):
    ms = [{'role': 'system', 'content': system}] if system else []
    for i, x in enumerate(turns if isinstance(turns, list) else [turns]):
        ms.append({'role': 'user' if i % 2 == 0 else 'assistant', 'content': x})
    P.append(
        {
            'id': len(P) + 1,
            'cat': cat,
            'messages': ms,
            'all': [all] if isinstance(all, str) else list(all),
            'none': [none] if isinstance(none, str) else list(none),
        }
    )


t('greet', 'hello', r'hello|hi\b|help')
t('greet', 'Good to see you. How is your morning going?', r'i am (doing )?(well|fine)')
t('self', 'who are u', r'parley|small')
t('self', 'What company trained you?', r'parley project')
t('self', 'Are you a big model or a small one?', r'small')
t('parley', 'My app wants to transcribe a wav file. Which port and path?', r'3002')
t('parley', 'Give me the list of voices please', r'gaius')
t('parley', 'Can I run Parley inside a web browser?', r'browser')
t('parley', 'What is the base url for my OpenAI client?', r'3000/v1')
t('math', 'what is 8 plus 9', r'\b17\b')
t('math', '6 * 7', r'\b42\b')
t('math', 'Is 31 larger than 13?', r'^yes')
t('count', 'count up to seven', r'1, 2, 3, 4, 5, 6, 7\.')
t('dates', 'How many days are there in April?', r'\b30\b')
t('words', 'opposite of early', r'late')
t('words', 'plural of tooth', r'teeth')
t('colour', 'what color is a banana', r'yellow')
t('define', 'define hammer', r'tool|nail')
t('define', 'What do we mean by the word courage?', r'afraid')
t('capital', "What's Canada's capital?", r'ottawa')
t('capital', 'Is Lyon the capital of France?', r'paris')
t('qa', 'why does it rain', r'cloud|drops')
t('animal', 'what noise does a cow make', r'moo')
t('extract', 'Ben bought four red apples at the market for Lucy. Who bought the apples?', r'ben')
t('json', 'Return JSON with name and city: Olga lives in Madrid.', [r'"olga"', r'"madrid"'])
t('rewrite', 'Make it polite: Close the window!', r'(could|please).*window')
t('unknown', 'Who won the football match last night?', r'do not know')
t('unknown', 'Explain general relativity to me.', r'do not know|larger model|relativity')
t('story', 'Write a short story about a dragon.', r'dragon')
t('echo', 'Reply with exactly: banana split', r'^banana split\.?$')
json.dump(P, open((sys.argv[1] if len(sys.argv) > 1 else '.') + '/blind_prompts.json', 'w'), indent=1)
print(len(P))
