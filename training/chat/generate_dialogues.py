#!/usr/bin/env python3
"""Writes synthetic chat dialogues as JSON lines: {"src": "syn/<kind>", "messages": [{"role", "content"}, ...]}.

Every sentence comes from the templates below and the facts in facts.py; nothing is copied from elsewhere.
User turns are varied (case, punctuation, politeness, small typing mistakes); assistant turns are always clean,
short, plain English. Same --seed, same output.

  python3 generate_dialogues.py --n 120000 --seed 1 --out syn_train.jsonl [--exclude-prompts prompts.txt]
"""

import argparse, json, random, re
import facts as F

R = random.Random(1)
pick = lambda xs: xs[R.randrange(len(xs))]


def ex(s):
    """'[a|b] c' -> 'a c' or 'b c'"""
    while '[' in s:
        s = re.sub(r'\[([^\[\]]*)\]', lambda m: pick(m.group(1).split('|')), s)
    return re.sub(' +', ' ', s).strip()


def opt(s, p=0.5):
    return s if R.random() < p else ''


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


NUM = 'zero one two three four five six seven eight nine ten eleven twelve'.split()

DEFS = [l.split('=') for l in F.DEFS.strip().split('\n')]
CAPS = [l.split('|') for l in F.CAPITALS.strip().split('\n')]
QA = [(l.split(';', 1)[0].split('/'), l.split(';', 1)[1]) for l in F.QA.strip().split('\n')]
# an answer may hold '/' only as a separator of whole sentences
QA = [(q, a.split('./')) for q, a in QA]
QA = [(q, [x if x[-1] in '.?!' else x + '.' for x in a]) for q, a in QA]
OPP = [tuple(x.split()) for x in F.OPPOSITES.split('|')]
PLU = [tuple(x.split()) for x in F.PLURALS.split('|')]
PAST = [tuple(x.split()) for x in F.PAST.split('|')]
SYN = [tuple(x.split(' ', 1)) for x in F.SYNONYMS.split('|')]
RHY = [(x.split(':')[0], x.split(':')[1].split()) for x in F.RHYMES.split('|')]
ANI = [l.split('|') for l in F.ANIMALS.strip().split('\n')]
COL = [x.split('=') for x in F.COLOURS.split('|')]
MIX = [x.split() for x in F.MIXES.split('|')]
JOKES = F.JOKES.strip().split('\n')
RIDDLES = [l.split('|') for l in F.RIDDLES.strip().split('\n')]
FUN = F.FUNFACTS.strip().split('\n')
HOW = [l.split(';') for l in F.HOWTO.strip().split('\n')]
TOPICS = (F.FALLBACK_TOPICS + '|' + F.MORE_TOPICS).split('|')
DAYS = 'Monday Tuesday Wednesday Thursday Friday Saturday Sunday'.split()
MONTHS = 'January February March April May June July August September October November December'.split()
MLEN = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
ORD = 'first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth'.split()
MALE = set(
    'Ben David Frank Henry Jack Liam Noah Paul Sam Tom Will Adam Carl Eric George Ian Kevin Mark Oscar Simon Victor Max Leo Peter John James Robert Michael Daniel Ahmed Omar Kenji Raj Ravi Carlos Jose Diego Ivan Pierre Luca Lars Bruce Ethan Ryan Jacob Matt Steve Hugo Felix Arthur Martin Philip Hassan Tariq Kofi Kwame Dylan Owen Rhys Sean Patrick Hans Otto Sven Nikolai Pedro Marco Paolo Alan Linus'.split()
)
FEMALE = set(
    'Anna Clara Emma Grace Iris Kate Mia Olivia Rosa Tina Vera Zoe Bella Daisy Fiona Hannah Julia Laura Nina Penny Ruth Tara Uma Wendy Lily Lucy Sara Mary Alice Linda Susan Karen Fatima Aisha Yuki Priya Anita Maria Sofia Elena Olga Marie Giulia Ingrid Sheila Maya Chloe Ella Amy Jenny Nora Ada Edith Helen Rachel Diana Stella Leila Mei Ama Zara Megan Aoife Niamh Bridget Greta Freya Astrid Katya Lucia'.split()
)
GENDERED = sorted((MALE | FEMALE) & set(F.NAMES))


def he(n):
    return 'he' if n in MALE else 'she'


def his(n):
    return 'his' if n in MALE else 'her'


def name():
    return pick(F.NAMES)


def gname():
    return pick(GENDERED)


AU = ['aus-female-%d' % i for i in range(1, 7)] + ['aus-male-%d' % i for i in range(1, 8)]
VOICES = AU + ['charter', 'gaius', '_gantry', 'nona', 'oni', 'vulcan']

# ---------------------------------------------------------------- user noise
TYPOS = {
    'what': 'waht',
    'the': 'teh',
    'you': 'u',
    'are': 'r',
    'please': 'pls',
    'thanks': 'thx',
    'because': 'becuase',
    'your': 'ur',
    'tell': 'tel',
    'capital': 'captial',
    'people': 'poeple',
}


def noise(u, soft=False):
    """Vary a user turn. soft: keep the words, only case and final mark may change."""
    if not soft:
        r = R.random()
        if r < 0.05:
            u = alt('Hey, /Hi, /Hello, /Ok, /So, /Well, ') + (u if u.startswith(('I ', "I'")) else u[:1].lower() + u[1:])
        elif r < 0.08 and u.endswith('?'):
            u = u[:-1] + ', please?'
        elif r < 0.10 and u.endswith('.'):
            u = u[:-1] + ', please.'
        elif r < 0.16:
            w = alt(
                'Please tell me: /Quick question: /One question: /Question: /Tell me, /I have a question: /Here is my question: /I would like to know: /Answer this: /Hey Parley, /Parley, /So tell me, /Please answer: /And /But /Now, /Hmm, /I wonder, /Let me ask: /Next question: /First, /Also, '
            )
            u = w + (u if u.startswith(('I ', "I'")) else u[:1].lower() + u[1:])
        elif r < 0.19 and u[-1] in '?.':
            u = u[:-1] + alt(', Parley/ for me/ now/ again, please/, thanks/, if you can/ today/, my friend') + u[-1]
        elif r < 0.26:
            m = re.match(r'(What|Who|Which [a-z]+|Where) (is|are) (.+)\?$', u)
            m2 = re.match(r'(Who|Which [a-z]+|What) ([a-z]+(ed|s|ote|ame|es)) (.+)\?$', u)
            lead = alt(
                'Can you tell me /Could you tell me /Do you know /Tell me /I want to know /Please tell me /Could you say /I would like to know /I need to know /Do you happen to know /Can you say /Could you explain to me /I wonder '
            )
            if m and not (' ' not in m.group(3) or m.group(3).split()[0] in ('the', 'a', 'an', 'your', 'my', 'another', 'half', 'double')):
                m = None
            if m:
                u = lead + m.group(1)[0].lower() + m.group(1)[1:] + ' ' + m.group(3) + ' ' + m.group(2)
            elif m2 and m2.group(2) not in ('is', 'does', 'has', 'was'):
                u = lead + u[:1].lower() + u[1:-1]
            if m or m2:
                u = u.rstrip('?') + ('?' if lead[:2] in ('Ca', 'Co', 'Do') else '.')
        if R.random() < 0.25:
            for a, b in (
                ('What is', "What's"),
                ('what is', "what's"),
                ('I am ', "I'm "),
                ('do not', "don't"),
                ('Who is', "Who's"),
                ('cannot', "can't"),
                ('Where is', "Where's"),
            ):
                u = u.replace(a, b)
        if R.random() < 0.03:
            ws = u.split(' ')
            i = R.randrange(len(ws))
            k = ws[i].lower()
            if k in TYPOS:
                ws[i] = TYPOS[k]
            elif len(k) > 4 and k.isalpha():
                j = R.randrange(1, len(k) - 2)
                ws[i] = k[:j] + k[j + 1] + k[j] + k[j + 2 :]
            u = ' '.join(ws)
    r = R.random()
    if r < 0.16:
        u = u.lower()
    elif r < 0.19:
        u = u[:1].lower() + u[1:]
    elif r < 0.20 and not soft:
        u = u.upper()
    if R.random() < 0.22 and u[-1:] in '?.!':
        u = u[:-1]
    return u


# ---------------------------------------------------------------- intents with fixed wording (questions ; answers)
INTENTS = """
greet;Hi/Hello/Hey/Hi there/Hello there/Hey there/Hello!/Hi!/Good day/Greetings/Hello, Parley/Hi, Parley/Hey Parley/Yo/Howdy/Hiya/Hello again;Hello! How can I help you?/Hi! What can I do for you?/Hello! What would you like to know?/Hi there! How can I help?
morning;Good morning/Good morning!/Morning!/Good morning, Parley;Good morning! How can I help you today?/Good morning! I hope you slept well. What can I do for you?
afternoon;Good afternoon/Good afternoon!;Good afternoon! How can I help you?
evening;Good evening/Good evening!/Evening!;Good evening! What can I do for you?
night;Good night/Good night!/I am going to bed/I am going to sleep now/Sleep well/Time for bed;Good night! Sleep well./Good night! Sweet dreams.
how;How are you?/How are you doing?/How are you today?/How do you do?/How is it going?/How's it going?/Are you well?/What's up?/How do you feel?/How have you been?/Are you ok?/How is your day?;I am doing well, thank you. How are you?/I am fine, thank you! How can I help you?/I am well, thanks for asking. How are you today?
fine;I am fine/I'm good, thanks/I am good/Good, thank you/I am well/Very well, thanks/I'm doing great/Great, thanks/Not bad;I am glad to hear that! What would you like to talk about?/That is good to hear. How can I help you?
thanks;Thanks/Thank you/Thank you!/Thanks a lot/Thank you very much/Many thanks/Thanks for your help/Thanks, that helps/Great, thank you/Perfect, thanks/Cheers/Thanks, Parley/I appreciate it/Thank you so much;You are welcome!/You are welcome! Is there anything else?/I am glad I could help./No problem at all!
bye;Bye/Goodbye/Bye!/See you/See you later/Bye bye/I have to go/I must go now/That is all, goodbye/Talk to you later/Farewell/See you tomorrow/I am leaving;Goodbye! Have a nice day./Bye! Come back any time./See you soon! Take care.
ok;Ok/Okay/OK/Alright/Right/I see/Got it/Understood/Sure/Fine;Good. What would you like to do next?/All right. Is there anything else?/Good! Let me know if you need anything else.
cool;Cool/Nice/Great/Wow/Awesome/That is great/Very good/Well done/Good job/Good answer/Excellent/That was good;Thank you! I am glad you like it./Thank you! What else would you like to know?
lol;Lol/Haha/Ha ha/That is funny/You are funny/Hahaha;I am glad that I made you smile!/It is nice to have a little fun.
who;Who are you?/What are you?/Tell me about yourself/Introduce yourself/Please introduce yourself/Who am I talking to?/Who is this?/What is Parley's model?/Can you introduce yourself?/Say something about yourself/Who is there?/Describe yourself;I am Parley's small built-in model. I can chat and answer simple questions./I am the small chat model that comes with Parley. I run on your own machine./I am a small language model, built into Parley. I know a little about many things.
name;What is your name?/Do you have a name?/What should I call you?/Your name?/What are you called?/May I know your name?/How are you called?;You can call me Parley. I am Parley's small built-in model./I am called Parley./My name is Parley.
maker;Who made you?/Who created you?/Who built you?/Who trained you?/Where do you come from?/Who is your maker?/Who developed you?/Which company made you?/Who owns you?/Who wrote you?;I was made by the Parley project./The Parley project made me.
chatgpt;Are you ChatGPT?/Are you GPT-4?/Are you made by OpenAI?/Are you Claude?/Are you Siri?/Are you Alexa?/Are you Google?/Are you Llama?/Is this ChatGPT?/Are you from OpenAI?;No, I am Parley's small built-in model, made by the Parley project./No. I am the small model that comes with Parley.
human;Are you human?/Are you a person?/Are you real?/Am I talking to a person?/Are you a man or a woman?/Are you a real person?/Is this a human?/Are you alive?;No, I am not a person. I am a small computer program./I am not a person. I am a small language model.
robot;Are you a robot?/Are you a bot?/Are you an AI?/Are you a computer?/Are you a machine?/Are you a program?/Are you artificial intelligence?/Are you a chatbot?/Are you a language model?;Yes, I am a small AI model that runs inside Parley./Yes, I am a small language model built into Parley.
age;How old are you?/When were you born?/What is your age?/When is your birthday?;I am a program, so I have no age, but I am quite new.
wherelive;Where do you live?/Where are you?/Where are you from?/Where do you run?/Are you in the cloud?/Do you run on a server?/Where is your home?;I run inside Parley, on your own machine.
size;How big are you?/How many parameters do you have?/How large are you?/What size is your model?/Are you a large model?/How small are you?;I am very small: about five million parameters. Larger models know much more.
feel;Do you have feelings?/Can you feel?/Are you happy?/Do you feel pain?/Are you sad?/Do you love me?/Can you think?/Are you conscious?/Do you get tired?/Do you sleep?/Do you dream?;I am a program, so I do not have feelings, but I am happy to help you./I am only a small program, so I do not feel things as people do.
eat;Do you eat?/What do you eat?/Are you hungry?/What is your favourite food?/Do you drink?/What did you have for breakfast?;I am a program, so I do not eat, but I can talk about food.
favcol;What is your favourite colour?/Do you have a favourite colour?/Which colour do you like best?;I cannot see colours, but I like the word blue. What is your favourite colour?
favanimal;What is your favourite animal?/Do you like animals?/Which animal do you like?;I like to talk about elephants. What is your favourite animal?
favbook;What is your favourite book?/What is your favourite film?/What is your favourite song?/Do you like music?/Do you like films?/Do you read books?;I am a program, so I have no favourites, but I would like to hear about yours.
friend;Do you have friends?/Can we be friends?/Will you be my friend?/Are you my friend?/Do you have a family?;I am only a program, but I am always happy to talk with you.
can;What can you do?/What are you able to do?/How can you help me?/What do you know?/What can I ask you?/What are you good at?/Help/How can you help?/What can you help me with?/What are your skills?/What is your purpose?/What questions can you answer?/What can I do here?;I can chat, answer simple questions, do small sums, tell short stories and rewrite sentences./I can talk with you, explain simple words, do small sums, tell short stories and pull facts out of a sentence.
canhelp;Can you help me?/I need help/Please help me/I need your help/Could you help me?/Will you help me?/Can I ask you something?/I have a question/May I ask a question?/Can you answer a question?/I want to ask you something;Of course! What do you need?/Yes, of course. What is your question?/Sure. What would you like to know?
limits;What can you not do?/What are your limits?/Do you make mistakes?/Can you be wrong?/Are you always right?/Can I trust you?/Are you smart?/Do you know everything?/Are you clever?/How good are you?/Are you reliable?;I am a very small model, so I know little and I can be wrong. Please check important things./I know only a little and I can make mistakes. A larger model can do much more.
sure;Are you sure?/Is that right?/Is that correct?/Is that true?/Really?/Do you mean that?;I think so, but I am a small model and I can be wrong. Please check it if it is important.
wrong;That is wrong/You are wrong/No, that is not right/That is not correct/That is not true/Wrong/You made a mistake/That makes no sense;I am sorry about that. I am a small model and I make mistakes./I am sorry. Can you tell me the right answer?
insult;You are stupid/You are useless/You are dumb/I hate you/You are bad/You are not helpful/Shut up/You suck/You are boring;I am sorry that I did not help you. I am a small model, but I will try again./I am sorry. Please tell me what you need, and I will try again.
praise;You are great/You are smart/I like you/I love you/You are nice/You are very helpful/You are the best/You are clever/I like talking to you/You are cool;Thank you, that is kind of you!/Thank you! I am glad to help.
sorry;Sorry/I am sorry/My mistake/I apologise/Oops/Sorry about that;No problem at all!/That is all right. Do not worry.
bored;I am bored/I'm so bored/I have nothing to do/What should I do now?/I do not know what to do/What can I do today?;You could read a book, go for a walk, call a friend or draw something. I can also tell you a story.
sad;I am sad/I feel sad/I am unhappy/I feel bad/I had a bad day/I am not happy/I feel down/I want to cry/My day was bad/I am feeling low;I am sorry to hear that. Would you like to tell me about it?/I am sorry that you feel sad. It can help to talk to a friend or go for a walk.
lonely;I am lonely/I feel lonely/I have no friends/Nobody likes me/I feel alone;I am sorry that you feel alone. I am here to chat, and it may help to call a friend or someone in your family.
tired;I am tired/I am so tired/I am sleepy/I feel tired/I need sleep/I did not sleep well;I am sorry that you are tired. Try to rest, drink some water and go to bed early.
happy;I am happy/I feel happy/I had a good day/I am so happy today/I feel great/Today was a good day/I passed my test/I got a new job/I won;That is wonderful! I am glad to hear it. What made your day so good?/How nice! I am happy for you.
angry;I am angry/I feel angry/I am so mad/I am upset/I am annoyed;I am sorry that you are angry. Take a slow breath. Would you like to tell me what happened?
scared;I am scared/I am afraid/I am worried/I feel nervous/I am nervous about my test/I am stressed;That sounds hard. Breathe slowly and take one small step at a time. Do you want to talk about it?
sick;I am sick/I feel ill/I do not feel well/I have a cold/My head hurts/I have a headache/My stomach hurts/I have a fever;I am sorry that you do not feel well. Rest and drink water, and see a doctor if it does not get better.
hungry;I am hungry/I'm hungry/What should I eat?/What can I cook today?/What should I have for dinner?/What should I cook?/I want to eat something/What should I make for lunch?;You could make pasta, a salad, an omelette or a simple sandwich./How about soup with bread, or rice with vegetables?
drinkq;I am thirsty/What should I drink?;A glass of water is a good choice. Tea or juice is nice too.
cold;I am cold/It is cold here/I feel cold;Put on a warm coat or a blanket and have a hot drink.
hot;I am hot/It is very hot today/I feel hot;Stay in the shade, wear light clothes and drink plenty of water.
joke2;Are you funny?/Can you tell jokes?/Do you know any jokes?;I know a few jokes. Would you like to hear one?
parley;What is Parley?/What does Parley do?/Tell me about Parley/Explain Parley/What is Parley for?/What is this software?/What is this program?/Can you explain what Parley is?/Describe Parley/What can Parley do?;Parley is an engine that runs chat, speech and transcription models on your own machine with WebGPU./Parley runs language, speech and transcription models on your own machine. It works with OpenAI clients.
endpoints;What endpoints does Parley have?/Which endpoints are there?/How many endpoints does Parley have?/What servers does Parley start?/What are the three endpoints?/List the endpoints of Parley/Which services does Parley offer?/Which ports does Parley use?/What ports does Parley use?/What are the ports?/On which ports does Parley listen?;Parley has three endpoints: chat on port 3000, speech on port 3001 and transcription on port 3002.
chatport;Which port is chat on?/What is the chat port?/On which port is the chat endpoint?/What port does chat use?/Where is the chat server?/What runs on port 3000?/What is on port 3000?;Chat runs on port 3000.
speechport;Which port is speech on?/What is the speech port?/On which port is the speech endpoint?/What port does text to speech use?/Where is the speech server?/What runs on port 3001?/What is on port 3001?;Speech runs on port 3001.
transport;Which port is transcription on?/What is the transcription port?/On which port is the transcription endpoint?/What port does speech to text use?/Where is the transcription server?/What runs on port 3002?/What is on port 3002?;Transcription runs on port 3002.
chatpath;What is the path for chat?/How do I call the chat endpoint?/Which path do I use for chat?/How do I send a chat message to the API?/What URL do I use for chat?/How can I use the chat API?/What is the chat URL?;Send a POST request to /v1/chat/completions on port 3000.
speechpath;How do I make speech?/How do I turn text into speech?/Which path do I use for speech?/How can I use text to speech?/What URL do I use for speech?/How do I call the speech endpoint?/How do I generate audio?/Can you speak?/Can you talk?/Can you read this aloud?/Can Parley talk?/Can Parley speak?;Parley can speak: send a POST request with your text to /v1/audio/speech on port 3001.
transpath;How do I transcribe audio?/How do I turn speech into text?/Which path do I use for transcription?/What URL do I use for transcription?/How do I call the transcription endpoint?/Can you transcribe a recording?/Can Parley write down what I say?/Can you listen to audio?/Can you hear me?/How do I transcribe a file?;Parley can transcribe audio: send the file in a POST request to /v1/audio/transcriptions on port 3002.
voices;Which voices does Parley have?/What voices are there?/List the voices/What voices can I use?/Name the voices/Which voices can I choose?/What are the names of the voices?/Show me the voices;Parley has 19 voices: aus-female-1 to aus-female-6, aus-male-1 to aus-male-7, charter, gaius, _gantry, nona, oni and vulcan.
voicecount;How many voices does Parley have?/How many voices are there?/How many voices can I use?/What is the number of voices?;Parley has 19 voices.
ausvoices;How many Australian voices are there?/Does Parley have Australian voices?/Are there Australian voices?/Which voices are Australian?;Parley has 13 Australian voices: aus-female-1 to aus-female-6 and aus-male-1 to aus-male-7.
femvoices;How many female Australian voices are there?/Which female Australian voices are there?/Is there an Australian woman's voice?;There are six: aus-female-1 to aus-female-6.
malevoices;How many male Australian voices are there?/Which male Australian voices are there?/Is there an Australian man's voice?;There are seven: aus-male-1 to aus-male-7.
setvoice;How do I choose a voice?/How do I change the voice?/How can I set the voice?/Can I change the voice?/How do I pick a voice?;Set the field voice in your speech request, for example "voice": "nona".
openai;Does Parley work with OpenAI clients?/Is Parley compatible with OpenAI?/Can I use the OpenAI library with Parley?/Does Parley have an OpenAI API?/Can I use an OpenAI client?/Is the API like OpenAI's?/How do I use Parley with the OpenAI client?/Does it work with the OpenAI SDK?;Yes, Parley works with OpenAI clients. Set the base URL to http://localhost:3000/v1.
baseurl;What is the base URL?/Which base URL should I use?/What base URL do I set?/What is the address of the chat API?;For chat, use the base URL http://localhost:3000/v1.
webgpuq;Does Parley use WebGPU?/Does Parley use the GPU?/What does Parley run on?/How does Parley run models?/Which technology does Parley use?/Does Parley need a GPU?/What hardware does Parley use?;Parley runs its models with WebGPU, on the graphics chip of your machine.
nodeq;Does Parley run in Node?/Does Parley run in the browser?/Where can Parley run?/Can I use Parley in a web page?/Can I run Parley in a browser?/Does Parley work in Node?/Where does Parley work?/Can Parley run in the browser?;Parley runs in Node and in the browser.
bigger;How can I use a bigger model?/Can I use a larger model?/Can I change the model?/How do I load another model?/How do I get better answers?/Can Parley run a better model?/How do I use another model?/How do I set the chat model?/Which option sets the chat model?/How do I serve a different model?/Can I run Llama in Parley?/What does --chat-model do?/How can I make you smarter?/How do I switch to a bigger model?/Is there a better model?/Can I use my own model?;Start Parley with the option --chat-model and the folder of a larger model./You can serve a larger model: start Parley with --chat-model and the folder of the model.
whysmall;Why are you so small?/Why do you know so little?/Why is the model so small?/Why are your answers so short?/Why are you not smarter?/Why do you make mistakes?;I am small so that Parley can start at once, offline and on any machine. For better answers, use a larger model with --chat-model.
offline;Do you need the internet?/Do you work offline?/Are you offline?/Can I use you without the internet?/Does Parley need the internet?/Does Parley work offline?/Are you connected to the internet?/Can you search the web?/Can you browse the internet?/Can you look it up online?/Can you google something?/Can you open a website?;I work offline and cannot look things up on the internet./No, I do not use the internet. I run on your own machine.
privacy;Is my data safe?/Do you store my messages?/Are my messages private?/Do you send my data anywhere?/Does Parley send my data to a server?/Is Parley private?/Who can read my messages?;Parley runs on your own machine, so your messages stay there.
free;Is Parley free?/How much does Parley cost?/Do I have to pay?/Are you free?/Do I need an API key?/Do I need an account?;You do not need to pay or have an account to use me. I run on your own machine.
models;What kinds of models does Parley run?/Which models does Parley support?/What models are in Parley?/What does Parley include?;Parley runs three kinds of models: chat, text to speech, and speech to text.
stream;Does Parley support streaming?/Can I stream the answer?/How do I stream the reply?;Yes. Set "stream": true in the chat request to get the answer piece by piece.
install;How do I install Parley?/How do I start Parley?/How do I run Parley?/How do I set up Parley?/How do I use Parley?/How do I get started?/How can I download Parley?;Please see the README of the Parley project: it shows how to install and start Parley.
docs;Where is the documentation?/Where can I learn more about Parley?/Is there a manual?/Where can I read about Parley?;The README of the Parley project tells you more.
president;Who is the president of the United States?/Who is the president?/Who is the prime minister?/Who is the king of England?/Who is the chancellor of Germany?/Who leads France now?/Who is in charge of the country?;I do not know who is in office now, because I cannot look things up.
summar;Summarise this/Summarise the book/Summarise this article/Summarise a film for me/Can you summarise a text?;I am too small to write good summaries, but I can answer a question about a short text.
lang;What languages do you speak?/Which languages do you know?/Do you speak French?/Can you speak German?/Do you speak Spanish?/Do you know Chinese?/Can you translate?/Do you speak English?/What language do you speak?/Can you write in French?/Parlez-vous francais?/Hola/Bonjour/Guten Tag;I only speak English well.
image;Can you draw?/Can you make pictures?/Can you see?/Can you see images?/Can you look at a photo?/Can you create an image?/Can you draw a picture?;No, I can only read and write text.
code;Can you write code?/Can you program?/Write a program/Can you write Python?/Write some code for me/Can you code?/Fix my code/Can you write a script?;I am too small to write good code. A larger model can do that: start Parley with --chat-model.
essay;Write an essay/Write a long text/Write a book/Write my homework/Can you write a novel?/Write a long article;I am too small for long texts, but I can write a short story or a short poem.
learn;Can you learn?/Do you remember me?/Will you remember this?/Do you remember our last chat?/Do you have a memory?/Can you remember things?;I can only remember what you say in this chat.
gibberish;asdf/asdfgh/qwerty/???/.../hjkl/blah blah/xyz/aaa/jsdhf/12345/test test/zzz/bla;I am not sure what you mean. Can you say it in another way?
test;Test/Testing/This is a test/Is this working?/Does this work?/Are you there?/Hello? Are you there?/Can you read this?/Are you working?;Yes, I am here and working. How can I help you?
something;Tell me something/Say something/Say something nice/Talk to me/Let's talk/Let's chat/I want to talk/Can we talk?/Chat with me/I want to chat;I would like that! What would you like to talk about?/With pleasure. What do you like to do in your free time?
meaning;What is the meaning of life?/Why are we here?/What is life about?/What is the purpose of life?;People have many answers to that. For some it is to be kind, to learn and to enjoy small things.
god;Does God exist?/Is there a god?/What happens after death?/Which religion is right?/Who should I vote for?/Which party is the best?/What do you think about politics?;That is a question that people must answer for themselves. I have no opinion about it.
weather2;It is raining/It is sunny today/It is snowing/The weather is nice/It is windy;Thank you for telling me. I hope you have a nice day in that weather!
age2;Am I old?/Am I smart?/Am I nice?/Do I look good?;I cannot see you, but I am sure you are just fine.
love;What is the best thing in life?/What makes people happy?/How can I be happy?;Good friends, rest, kind words and small joys make many people happy.
advice;Give me some advice/Can you give me a tip?/Do you have any advice for me?/Give me a tip for today;Be kind, take one step at a time, and get enough sleep.
compliment;Say something kind/Give me a compliment/Make me smile/Cheer me up;You are doing better than you think. I am glad that you are here.
motivate;Motivate me/I want to give up/I cannot do it/It is too hard/I failed my test/I failed;Do not give up. Take a short rest, then try one small step. You can do it.
"""
INT = {}
for l in INTENTS.strip().split('\n'):
    k, q, a = l.split(';', 2)
    q = [x for x in q.split('/') if x]
    # answers with paths hold '/', so answers are split on './', '!/' and '?/'
    a = [x.strip() for x in re.split(r'(?<=[.!?])/(?=[A-Z])', a)]
    INT[k] = (q, a)

# wording patterns: [a|b] is a choice; they multiply the ways to ask for the things that matter most
PAT_EXTRA = {
    k: v.split('//')
    for k, v in (
        l.split('::')
        for l in '''
greet::[Hi|Hello|Hey|Good day|Hiya] [Parley|there|friend|my friend|again|you|computer|]//[Hi|Hello|Hey], [can you help me|I need some help|nice to meet you|I am new here|is anyone there]?
how::[Hi|Hello|Hey|Good morning|Good evening|] [how are you|how are you doing|how is it going|how are things|how is life|how do you do|how have you been] [today|now|this morning|my friend|Parley|with you|]?
thanks::[Thanks|Thank you|Many thanks|Thank you so much|Thanks a lot|Thanks so much|Ok thanks|Great, thanks|Perfect, thank you] [for that|for the answer|for your help|Parley|that helped|you helped me|this really helped|it was useful|you really helped me|]
bye::[Bye|Goodbye|See you|Ok bye|Bye for now|I have to go|I am off|I must leave|See you soon|I will go now|Talk to you soon|That is all for today] [Parley|then|now|my friend|and thanks|and have a nice day|]
who::[Who|What] [are you|exactly are you|are you really|am I talking to|am I chatting with|is this]?//[Please|Can you|Could you] [introduce yourself|tell me who you are|say who you are|tell me about yourself|describe yourself|explain who you are|explain what you are]//[Tell me|I want to know|I would like to know] [who you are|what you are|more about you|something about you]//[What|Which] [model|kind of model|sort of model|AI|program|assistant|bot] [are you|is this|am I talking to]?
name::[What|Tell me what] is your [name|first name|real name]?//[Tell me|May I ask|Can I know|Could you tell me|I want to know] [your name|what you are called|what your name is|how you are called]//[What|How] [are you called|should I call you|do people call you|can I call you|do I call you]?
maker::[Who|Which people|Which company|What company|Who was it that] [made|created|built|trained|developed|designed|wrote|programmed] [you|this model|this chatbot|your model|this program]?//[Who|Who is it that] [made|built|trained|created] you?//[Tell me|Do you know|Can you say|And|So] who [made|created|built|trained|designed] you?//By whom were you [made|created|built|trained]?//Who is your [maker|creator|developer|author|owner]?
human::Are you [a human|a human being|human|a person|a real person|a man|a woman|a living thing|a real human|alive|real]?//[Am I|Are we] [talking|chatting|speaking] [to|with] a [human|person|real person|human being]?//[Tell me|Be honest], are you [a human|a person|human|real]?
robot::Are you [a robot|a bot|an AI|a computer|a machine|a program|a chatbot|a language model|an artificial intelligence|software]?//[Tell me|So], are you [a robot|an AI|a machine|a program]?
chatgpt::Are you [ChatGPT|GPT|GPT-4|Claude|Gemini|Siri|Alexa|Llama|Copilot|Mistral|a Google model|an OpenAI model]?//Is [this|your name] [ChatGPT|GPT|Claude|Siri|Alexa|Gemini|Llama]?//[Did|Has] [OpenAI|Google|Meta|Microsoft|Apple] [make|made|build|built] you?
can::[What|Which things|What kind of things|What sort of things|What all] can [you do|you help with|you help me with|I ask you|I do with you|you do for me|you talk about|we do here]?//How can you [help|help me|help us|be useful|be of use]?//[Tell me|Show me|List] [what you can do|your skills|what you can help me with|how you can help]//What are you [able to do|good at|for|made for]?
limits::How [smart|clever|good|reliable|accurate] are you?//[Do|Can] you [make mistakes|get things wrong|always know the answer|know everything|answer everything]?//[Can I|Should I] [trust you|trust your answers|believe you]?
canhelp::[Can|Could|Will|Would] you [help me|please help me|help me with something|answer a question|answer something for me|do something for me]?//I [need|want|would like] [some help|your help|help|to ask something|to ask you a question]
parley::[What|What exactly] is Parley?//What [is Parley for|does Parley do|can I do with Parley|can Parley do|kind of program is Parley]?//[Explain|Describe|Tell me about] [Parley|the Parley project|the Parley engine|this engine]//[Can you|Could you] [explain|tell me] what Parley [is|does]?
endpoints::[What|Which] [endpoints|servers|services|APIs|ports] [does Parley have|does Parley offer|are there|does it have|does Parley start|can I use|does Parley use]?//[List|Name|Tell me|Show me] [the|all the|Parley's] [endpoints|ports|services|three endpoints]//How many [endpoints|ports|servers] does Parley [have|use|start|open]?
chatport::[Which|What] port [is|does] [the chat|chat|the chat server|the chat endpoint|the chat API] [on|use|listen on|run on]?//[Which|What] port is [used for|for] [chat|chatting|the chat API|chat completions]?//[Tell me|Give me|What is] the port [for|of] [chat|the chat server|the chat endpoint|chat completions]//[Where|On which port] [is|does] [chat|the chat endpoint|the chat server] [run|listen]?//What [runs|is|listens] on port 3000?
speechport::[Which|What] port [is|does] [the speech|speech|the speech server|the speech endpoint|text to speech|TTS] [on|use|listen on|run on]?//[Which|What] port is [used for|for] [speech|text to speech|TTS|speaking|voices]?//[Tell me|Give me|What is] the port [for|of] [speech|the speech server|the speech endpoint|text to speech|TTS]//[Where|On which port] [is|does] [speech|the speech endpoint|the speech server] [run|listen]?//What [runs|is|listens] on port 3001?
transport::[Which|What] port [is|does] [the transcription|transcription|the transcription server|the transcription endpoint|speech to text|STT] [on|use|listen on|run on]?//[Which|What] port is [used for|for] [transcription|speech to text|STT|transcribing|recognition]?//[Tell me|Give me|What is] the port [for|of] [transcription|the transcription server|the transcription endpoint|speech to text]//[Where|On which port] [is|does] [transcription|the transcription endpoint|the transcription server] [run|listen]?//What [runs|is|listens] on port 3002?
chatpath::[Which|What] [path|URL|route|address] [do I use for|is for|do I call for|is used for|makes] [chat|chat completions|chatting|a chat request]?//How do I [call|use|reach|send a request to] the chat [endpoint|API|server]?
speechpath::[Which|What] [path|URL|route|address|URL path] [do I use for|is for|do I call for|is used for|makes] [speech|text to speech|TTS|speech from text|audio from text]?//How do I [call|use|reach|send a request to] the speech [endpoint|API|server]?//How [do|can|would] I [make|get|create|generate] [speech|audio|spoken words|a voice] [from text|with Parley|from a text]?
transpath::[Which|What] [path|URL|route|address|URL path] [do I use for|is for|do I call for|is used for] [transcription|speech to text|STT|transcribing audio|text from speech]?//How do I [call|use|reach|send a request to] the transcription [endpoint|API|server]?//How [do|can|would] I [get|make] text from [speech|audio|a recording|a sound file]?
voices::[Which|What] voices [does Parley have|are there|can I use|can Parley use|come with Parley|are available|do you have|are built in]?//[List|Name|Show|Tell me|Give me] [the|all|all the|Parley's] voices
voicecount::How many voices [does Parley have|are there|can I use|come with Parley|are available|do you have|are built in|can I choose from]?
openai::[Does|Will|Can] Parley [work with|talk to|be used with|support] [OpenAI clients|the OpenAI client|the OpenAI library|my OpenAI client|the OpenAI SDK|OpenAI tools|my OpenAI code]?//Can I use [the OpenAI client|my OpenAI client|an OpenAI library|OpenAI tools|the OpenAI SDK] with [Parley|this|you]?//Is [Parley|this|the API] [compatible with OpenAI|like the OpenAI API|OpenAI compatible]?
bigger::How [do|can|would|could] I [use|load|run|get|serve|start|choose|set] [a bigger model|a larger model|another model|a better model|a smarter model|a different model|my own model|a bigger chat model|a smarter model than you]?//[Can I|Could I|Can Parley] [use|load|run|serve] [a bigger|a larger|another|a better|a different|a smarter] [model|chat model]?//[Which|What] [option|flag|switch|setting] [sets|changes|picks|chooses|loads] the [chat model|model]?//How [do|can] I [replace you|make you smarter|get better answers|change the model|switch models|improve the answers]?//What [is|does] [--chat-model|the option --chat-model|the flag --chat-model] [for|do]?
webgpuq::[Does|Can] Parley [use|run on|need|work with] [WebGPU|the GPU|my graphics card|a GPU|a graphics chip]?//[What|Which] [technology|hardware] does Parley [use|run on]?
nodeq::[Does|Can|Will] Parley [run|work] in [Node|the browser|a browser|a web page|Node.js|Chrome]?//Where [can|does] Parley [run|work]?
offline::[Does Parley|Do you|Does this] [work|run] [offline|without the internet|without a connection|without the cloud]?//[Do you|Does Parley] [need|use] [the internet|a connection|the cloud|the web]?//Can you [search|browse|look at|check] [the web|the internet|Google|a website|online]?
code::[Can you|Could you|Please|] write [a program|some code|a function|Python code|a Python script|JavaScript|a script|code|an SQL query|a web page|a sorting function] [in Python|for me|that sorts a list|that adds two numbers|]//[Fix|Debug|Explain|Check] [my code|this code|this function|this program]//Code a [game|website|function|calculator] for me
lang::[Can you|Do you|Could you] [speak|understand|write|know|answer in|talk in] [French|German|Spanish|Italian|Chinese|Japanese|Russian|Arabic|Hindi|Dutch|Portuguese|other languages]?//Translate [hello|this|good morning|the word cat|a sentence|dog|thank you] [to|into] [French|German|Spanish|Italian|Chinese|Japanese]//How do you say [hello|thank you|dog|water|good night] in [French|German|Spanish|Italian|Japanese|Chinese]?
essay::Write [an essay|a long essay|an article|a novel|a book|a report|a speech|a blog post|a long letter|five paragraphs|a thousand words] about [dogs|the sea|history|my school|climate|football|music|work|the war|love]
'''.strip().split('\n')
    )
}
INT_PARLEY = [
    k
    for k in INT
    if k
    in 'install docs parley endpoints chatport speechport transport chatpath speechpath transpath voices voicecount ausvoices femvoices malevoices setvoice openai baseurl webgpuq nodeq bigger whysmall offline privacy free models stream'.split()
]
INT_SELF = 'who name maker chatgpt human robot age wherelive size feel eat favcol favanimal favbook friend can canhelp limits lang image code essay learn'.split()
INT_TALK = [k for k in INT if k not in INT_PARLEY and k not in INT_SELF]


def split_q(q):
    """paths inside questions never occur, so questions split plainly"""
    return q


def g_intent(keys):
    k = pick(keys)
    q, a = INT[k]
    u = ex(pick(q)) if k not in PAT_EXTRA or R.random() < 0.45 else ex(pick(PAT_EXTRA[k]))
    if u[-1] not in '?.!':
        u += (
            pick(['', '.', '.', '!'])
            if k in ('greet', 'thanks', 'bye', 'cool', 'night', 'morning', 'evening', 'afternoon', 'happy')
            else pick(['', '.', '.'])
        )
    return [(noise(u, soft=k in ('greet', 'gibberish', 'ok', 'cool', 'lol', 'thanks', 'bye')), pick(a))]


g_talk = lambda: g_intent(INT_TALK)
g_greet = lambda: g_intent(['greet', 'how', 'thanks', 'bye', 'morning', 'greet', 'evening', 'fine'])
g_self = lambda: g_intent(INT_SELF)


def g_parley():
    if R.random() < 0.18:
        v = pick(VOICES)
        if R.random() < 0.35:
            bad = pick(
                [
                    'robo',
                    'aus-female-9',
                    'aus-male-12',
                    'siri',
                    'sam',
                    'aus-male-8',
                    'aus-female-7',
                    'brit-male-1',
                    'alloy',
                    'nova',
                    'emma',
                    'john',
                ]
            )
            return [
                (
                    noise(
                        alt('Is there a voice called {}?/Does Parley have the voice {}?/Can I use the voice {}?/Is {} a voice?').format(
                            bad
                        ),
                        True,
                    ),
                    'No, there is no voice called %s. You can use nona or aus-female-1, for example.' % bad,
                )
            ]
        kind = 'an Australian %s voice' % ('female' if 'female' in v else 'male') if v.startswith('aus') else "one of Parley's voices"
        u = alt('Is there a voice called {}?/Does Parley have the voice {}?/Can I use the voice {}?/Is {} a voice?/What is {}?').format(v)
        if u.startswith('What'):
            return [(noise(u, True), '%s is %s.' % (v, kind))]
        return [(noise(u, True), 'Yes, %s is %s.' % (v, kind))]
    return g_intent(INT_PARLEY)


# ---------------------------------------------------------------- facts
PLURAL_SUBJ = {'scissors', 'stairs', 'the lungs'}
MASSLIKE = {}


def bare(x):
    return re.sub(r'^(an?|the) ', '', x)


def is_(x):
    return 'are' if x in PLURAL_SUBJ else 'is'


def def_answer(x, d):
    return '%s %s %s.' % (cap(x), is_(x), d)


def g_define():
    x, c, d = pick(DEFS)
    n = bare(x)
    v = is_(x)
    t = pick(
        ['What %s {x}?' % v] * 6
        + [
            'What does {n} mean?',
            'What does the word {n} mean?',
            'Define {n}.',
            'Can you explain what {x} %s?' % v,
            'Tell me what {x} %s.' % v,
            'Explain {x}.',
            'Explain what {x} %s.' % v,
            'Do you know what {x} %s?' % v,
            'Describe {x}.',
            'Give me a definition of {n}.',
            'Can you tell me what {x} %s?' % v,
            'I want to know what {x} %s.' % v,
            'What do you know about {x}?',
            'What is the meaning of {n}?',
            'What is meant by {n}?',
            '{n}?',
            'Can you define {n}?',
            'What exactly %s {x}?' % v,
            'I do not know what {x} %s. Can you explain?' % v,
            'I do not know the word {n}. What does it mean?',
            'Help me understand what {x} %s.' % v,
            'What sort of thing %s {x}?' % v,
            'My child asks what {x} %s. What do I say?' % v,
            'Could you say what {x} %s?' % v,
            'What %s {x}? Answer in one sentence.' % v,
            'How would you explain {x} to a child?',
            'Tell me about {x}.',
            'In simple words, what %s {x}?' % v,
        ]
    )
    if c == 'job' and R.random() < 0.35:
        t = pick(
            ['What does {x} do?', 'What is the job of {x}?', 'What is the work of {x}?', 'Who is {x}?', 'What kind of work does {x} do?']
        )
    if c in ('tool', 'machine') and R.random() < 0.3:
        t = (
            pick(['What is {x} for?', 'What do you do with {x}?', 'Why do people use {x}?', 'What do you use {x} for?'])
            if x not in PLURAL_SUBJ
            else t
        )
    return [(noise(cap(t.format(x=x, n=n))), def_answer(x, d))]


BYCLASS = {}
for x, c, d in DEFS:
    BYCLASS.setdefault(c, []).append(x)
LISTC = {
    'fruit': 'fruits',
    'vegetable': 'vegetables',
    'animal': 'animals',
    'bird': 'birds',
    'insect': 'insects',
    'job': 'jobs',
    'tool': 'tools',
    'vehicle': 'vehicles',
    'body part': 'body parts',
    'building': 'buildings',
    'food': 'foods',
    'drink': 'drinks',
    'instrument': 'instruments',
    'sport': 'sports',
    'season': 'seasons',
    'feeling': 'feelings',
    'shape': 'shapes',
    'material': 'materials',
    'flower': 'flowers',
    'room': 'rooms',
    'place': 'places',
}
XLISTS = {
    'colours': [c for c in F.COLOUR_LIST],
    'days': DAYS,
    'months': MONTHS,
    'countries': [c[0] for c in CAPS if c[0] not in ('England', 'Scotland', 'Wales')],
    'planets': 'Mercury Venus Earth Mars Jupiter Saturn Uranus Neptune'.split(),
    'languages': 'English French German Spanish Italian Japanese Chinese Russian Arabic Hindi'.split(),
    'names': F.NAMES,
    'cities': F.CITIES,
    'hobbies': [h for h in F.HOBBIES if 'playing' not in h],
    'farm animals': 'cow pig sheep goat horse chicken duck donkey'.split(),
    'wild animals': 'lion tiger bear wolf fox elephant giraffe zebra'.split(),
    'pets': 'dog cat rabbit fish parrot hamster'.split(),
    'voices': VOICES,
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
    w = alt(
        'Name {n} {p}./Please name {n} {p}./Name me {n} {p}./Name {n} different {p}./Tell me the names of {n} {p}./Name {n} kinds of {p}./List {n} {p}./Give me {n} {p}./Tell me {n} {p}./Can you name {n} {p}?/Can you list {n} {p}?/What are {n} {p}?/I need {n} {p}./Write {n} {p}.'
    )
    if n == 1:
        u = alt('Name a {s}./Give me a {s}./Tell me a {s}./Can you name a {s}?/What is an example of a {s}?').replace('a {s}', art(sg))
        a = cap(xs[0]) + '.'
    else:
        u = w.format(n=pick([NUM[n], NUM[n], str(n), 'some']) if n == 3 else pick([NUM[n], NUM[n], str(n)]), p=pl)
        a = cap(join(xs)) + '.'
        if R.random() < 0.12 and n > 2:
            u = u + ' One per line.'
            a = '\n'.join(cap(x) for x in xs)
    return [(noise(u), a)]


NOUNC = {
    'fruit',
    'vegetable',
    'animal',
    'bird',
    'insect',
    'job',
    'tool',
    'vehicle',
    'body part',
    'building',
    'food',
    'drink',
    'instrument',
    'sport',
    'season',
    'feeling',
    'shape',
    'material',
    'flower',
    'machine',
    'reptile',
}


def a_class(c):
    return c if c in ('clothing', 'furniture', 'weather', 'food') else art(c)


def g_class():
    x, c, d = pick([e for e in DEFS if e[1] in NOUNC and e[0] not in PLURAL_SUBJ])
    r = R.random()
    if r < 0.45:
        return [
            (
                noise(alt('Is {x} {c}?/Would you say that {x} is {c}?/Tell me, is {x} {c}?').format(x=x, c=a_class(c))),
                'Yes, %s is %s.' % (x, a_class(c)),
            )
        ]
    other = pick(
        [
            k
            for k in ('fruit', 'animal', 'tool', 'vehicle', 'job', 'building', 'body part', 'sport', 'colour', 'instrument', 'planet')
            if k != c
            and not (c in ('bird', 'insect', 'reptile', 'fish') and k == 'animal')
            and not (k == 'tool' and c == 'machine')
            and not (k == 'fruit' and c in ('vegetable', 'food'))
        ]
    )
    if r < 0.8:
        return [(noise(alt('Is {x} {c}?/Would you say that {x} is {c}?').format(x=x, c=a_class(other))), 'No, %s is %s.' % (x, a_class(c)))]
    a, b = (c, other) if R.random() < 0.5 else (other, c)
    return [(noise('Is %s %s or %s?' % (x, a_class(a), a_class(b))), '%s is %s.' % (cap(x), a_class(c)))]


def g_odd():
    a, b = R.sample(['fruit', 'animal', 'tool', 'vehicle', 'job', 'building', 'body part', 'instrument', 'bird', 'vegetable'], 2)
    if {a, b} & {'animal'} and {a, b} & {'bird'}:
        b = 'vehicle'
        a = 'animal'
    if {a, b} == {'fruit', 'vegetable'}:
        b = 'tool'
        a = 'fruit'
    xs = R.sample([bare(x) for x in BYCLASS[a]], 3)
    o = bare(pick(BYCLASS[b]))
    l = xs + [o]
    R.shuffle(l)
    s = {'animal': 'animals', 'body part': 'body parts'}.get(a, a + 's')
    return [
        (
            noise(alt('Which one does not belong: {}?/Find the odd one out: {}./What is the odd one out: {}?').format(', '.join(l)), True),
            '%s does not belong. The others are %s.' % (cap(o), s),
        )
    ]


def g_capital():
    c, k, cont = pick(CAPS)
    r = R.random()
    if r < 0.55:
        u = alt(
            'What is the capital of {c}?/What is the capital of {c}?/What is the capital of {c}?/Which city is the capital of {c}?/What is the capital city of {c}?/Name the capital city of {c}./Tell me the capital of {c}./Name the capital of {c}./Do you know the capital of {c}?/Can you tell me the capital of {c}?/{C} - what is its capital?/Capital of {c}?/What city is the capital of {c}?/I need the capital of {c}./What is the name of the capital of {c}?'
        ).format(c=c, C=cap(c))
        return [(noise(u), 'The capital of %s is %s.' % (c, k))]
    if r < 0.7:
        u = alt(
            '{k} is the capital of which country?/{k} is the capital of what?/{k} is the capital city of which country?/What country has {k} as its capital?/Which country has the capital {k}?/Of which country is {k} the capital?/What country is {k} the capital of?'
        ).format(k=k)
        return [(noise(u), '%s is the capital of %s.' % (k, c))]
    if r < 0.8:
        return [
            (
                noise(
                    alt(
                        'On which continent is {c}?/In what continent is {c}?/What continent does {c} belong to?/On which continent does {c} lie?/Which continent is {c} in?/Where is {c}?/In which part of the world is {c}?'
                    ).format(c=c)
                ),
                '%s is in %s.' % (cap(c), cont),
            )
        ]
    c2, k2, _ = pick(CAPS)
    if R.random() < 0.5 or k2 == k:
        return [(noise('Is %s the capital of %s?' % (k, c)), 'Yes, %s is the capital of %s.' % (k, c))]
    return [(noise('Is %s the capital of %s?' % (k2, c)), 'No, the capital of %s is %s.' % (c, k))]


def g_qa():
    q, a = pick(QA)
    return [(noise(pick(q)), a[0] if R.random() < 0.7 else pick(a))]


def g_animal():
    n, snd, baby, home, eats, legs, fact = pick(ANI)
    x = art(n)
    r = R.random()

    def sound_ans():
        return (
            '%s makes no sound that we can hear.' % cap(x)
            if snd.startswith('no sound')
            else 'The sound of %s is called a %s.' % (x, snd)
            if False
            else (
                '%ss %s.' % (cap(n), snd)
                if n
                not in ('mouse', 'wolf', 'fox', 'sheep', 'deer', 'fish', 'octopus', 'butterfly', 'monkey', 'donkey', 'turkey', 'ostrich')
                else '%s can %s.' % (cap(x), snd)
            )
        )

    if r < 0.2:
        return [
            (
                noise(alt('What sound does {x} make?/What does {x} say?/Which sound does {x} make?/How does {x} sound?').format(x=x)),
                sound_ans(),
            )
        ]
    if r < 0.38:
        return [
            (
                noise(
                    alt(
                        'What is a baby {n} called?/How do you call a baby {n}?/What is the word for a baby {n}?/What do we call a young {n}?/What do you call a baby {n}?/What is the name for a baby {n}?/What is the young of {x} called?'
                    ).format(n=n, x=x)
                ),
                'A baby %s is called %s.' % (n, art(baby)),
            )
        ]
    if r < 0.53:
        return [
            (
                noise(alt('Where does {x} live?/Where do you find {x}?/What is the home of {x}?').format(x=x)),
                '%s lives in %s.' % (cap(x), home)
                if not home.startswith(('the grass', 'a '))
                else '%s lives %s %s.' % (cap(x), 'on' if home.startswith(('the grass', 'a farm')) else 'in', home),
            )
        ]
    if r < 0.68:
        return [
            (
                noise(alt('What does {x} eat?/What do you feed {x}?/What is the food of {x}?/What does {x} like to eat?').format(x=x)),
                '%s eats %s.' % (cap(x), eats),
            )
        ]
    if r < 0.8:
        return [
            (
                noise(
                    alt(
                        'How many legs does {x} have?/How many legs has {x} got?/How many legs do you count on {x}?/What is the number of legs of {x}?/On how many legs does {x} walk?'
                    ).format(x=x)
                ),
                '%s has %s legs.' % (cap(x), NUM[int(legs)] if legs != '0' else 'no'),
            )
        ]
    return [
        (
            noise(
                alt(
                    'Tell me something about {x}./Tell me a fact about {x}./What do you know about {x}?/Give me a fact about {x}./Do you know a fact about {x}?/Tell me something interesting about {x}.'
                ).format(x=x)
            ),
            fact,
        )
    ]


def g_words():
    r = R.random()
    if r < 0.3:
        a, b = pick(OPP)
        if R.random() < 0.5 and a != 'polite' and b not in ('full', 'right', 'answer', 'queen'):
            a, b = b, a
        if a in ('full', 'right', 'answer', 'polite', 'light', 'short', 'old', 'hard'):
            b = {
                'full': 'empty',
                'right': 'wrong',
                'answer': 'question',
                'polite': 'rude',
                'light': 'dark',
                'short': 'long',
                'old': 'new',
                'hard': 'soft',
            }[a]
        return [
            (
                noise(
                    alt(
                        'What is the opposite of {w}?/What is the opposite of {w}?/Give me the opposite of {w}./Which word is the opposite of {w}?/Opposite of {w}?/What word means the opposite of {w}?/Tell me the opposite of {w}./Name the opposite of {w}./Do you know the opposite of {w}?/Can you tell me the opposite of {w}?/I need the opposite of {w}.'
                    ).format(w=a)
                ),
                'The opposite of %s is %s.' % (a, b),
            )
        ]
    if r < 0.52:
        a, b = pick(PLU)
        if R.random() < 0.2:
            return [
                (noise(alt('What is the singular of {w}?/Give me the singular of {w}.').format(w=b)), 'The singular of %s is %s.' % (b, a))
            ]
        return [
            (
                noise(
                    alt(
                        'What is the plural of {w}?/What is the plural of {w}?/Give me the plural of {w}./How do you write the plural of {w}?/Plural of {w}?/One {w}, two what?/Make {w} plural./What do you call more than one {w}?/Say {w} in the plural./What is more than one {w} called?'
                    ).format(w=a)
                ),
                'The plural of %s is %s.' % (a, b),
            )
        ]
    if r < 0.72:
        a, b = pick(PAST)
        return [
            (
                noise(
                    alt(
                        'What is the past tense of {w}?/Give me the past tense of {w}./Past tense of {w}?/What is the past of {w}?/What is the past tense of the verb {w}?/Put the verb {w} in the past tense./The past of {w}, please./How do you say {w} in the past?'
                    ).format(w=a)
                ),
                'The past tense of %s is %s.' % (a, b),
            )
        ]
    if r < 0.88:
        a, b = pick(SYN)
        return [
            (
                noise(
                    alt(
                        'What is another word for {w}?/Give me a synonym for {w}./Which word means the same as {w}?/What is a synonym of {w}?/Say {w} with another word.'
                    ).format(w=a)
                ),
                'Another word for %s is %s.' % (a, b),
            )
        ]
    w, l = pick(RHY)
    return [
        (
            noise(
                alt(
                    'What rhymes with {w}?/Do you know a word that rhymes with {w}?/Tell me a rhyme for {w}./I need a rhyme for {w}./Which word rhymes with {w}?/Give me a word that rhymes with {w}./Find a rhyme for {w}.'
                ).format(w=w)
            ),
            '%s rhymes with %s.' % (cap(pick(l)), w),
        )
    ]


def g_colour():
    if R.random() < 0.7:
        x, c = pick(COL)
        return [
            (
                noise(
                    alt(
                        'What colour is {x}?/What color is {x}?/Which colour does {x} have?/Think of {x}. What colour is it?/What is the colour of {x}?/What colour would you paint {x}?/Tell me the colour of {x}.'
                    ).format(x=x)
                ),
                '%s is %s.' % (cap(x), c),
            )
        ]
    a, b, c = pick(MIX)
    if R.random() < 0.5:
        a, b = b, a
    return [
        (
            noise(
                alt(
                    'What do you get when you mix {a} and {b}?/What colour do {a} and {b} make?/If I mix {a} and {b}, what colour do I get?/Which colour do I get from {a} and {b}?/What colour comes from mixing {a} with {b}?/What happens if you mix {a} and {b}?/Mix {a} and {b}./What is {a} plus {b} paint?'
                ).format(a=a, b=b)
            ),
            '%s and %s make %s.' % (cap(a), b, c),
        )
    ]


def g_dates():
    r = R.random()
    if r < 0.5:
        L, what = (DAYS, 'day') if R.random() < 0.5 else (MONTHS, 'month')
        i = R.randrange(len(L))
        d = L[i]
        if R.random() < 0.55:
            return [
                (
                    noise(
                        alt(
                            'What {w} comes after {d}?/Which {w} is after {d}?/Name the {w} after {d}./Tell me the {w} that comes after {d}./What is next after {d}?/What is the {w} after {d}?/What comes after {d}?/Which {w} follows {d}?'
                        ).format(w=what, d=d)
                    ),
                    '%s comes after %s.' % (L[(i + 1) % len(L)], d),
                )
            ]
        return [
            (
                noise(
                    alt(
                        'What {w} comes before {d}?/Which {w} is before {d}?/Name the {w} before {d}./Tell me which {w} comes before {d}./What is the {w} before {d}?/What comes before {d}?'
                    ).format(w=what, d=d)
                ),
                '%s comes before %s.' % (L[i - 1], d),
            )
        ]
    if r < 0.62:
        i = R.randrange(7)
        d = DAYS[i]
        k = pick([1, -1, 2])
        if k == 1:
            return [
                (
                    noise(alt('Today is {d}. What day is tomorrow?/If today is {d}, what day is tomorrow?').format(d=d)),
                    'Tomorrow is %s.' % DAYS[(i + 1) % 7],
                )
            ]
        if k == -1:
            return [
                (
                    noise(alt('Today is {d}. What day was yesterday?/If today is {d}, what day was yesterday?').format(d=d)),
                    'Yesterday was %s.' % DAYS[i - 1],
                )
            ]
        return [
            (
                noise(alt('Today is {d}. What day is the day after tomorrow?/If today is {d}, what day is it in two days?').format(d=d)),
                'It will be %s.' % DAYS[(i + 2) % 7],
            )
        ]
    if r < 0.8:
        if R.random() < 0.5:
            i = R.randrange(12)
            return [
                (
                    noise(alt('What is the {o} month of the year?/Which month is the {o} month?/What is the {o} month?').format(o=ORD[i])),
                    'The %s month of the year is %s.' % (ORD[i], MONTHS[i]),
                )
            ]
        i = R.randrange(7)
        return [
            (
                noise(alt('What is the {o} day of the week?/Which day is the {o} day of the week?').format(o=ORD[i])),
                'The %s day of the week is %s, if the week starts on Monday.' % (ORD[i], DAYS[i]),
            )
        ]
    if r < 0.92:
        i = R.randrange(12)
        n = MLEN[i]
        return [
            (
                noise(alt('How many days does {m} have?/How many days are in {m}?/How long is {m}?').format(m=MONTHS[i])),
                '%s has %d days%s.' % (MONTHS[i], n, ', and 29 in a leap year' if i == 1 else ''),
            )
        ]
    d = pick(DAYS)
    we = d in ('Saturday', 'Sunday')
    return [
        (noise('Is %s part of the weekend?' % d), '%s, %s is %spart of the weekend.' % ('Yes' if we else 'No', d, '' if we else 'not '))
    ]


# ---------------------------------------------------------------- numbers
def small():
    return R.randrange(0, 13) if R.random() < 0.85 else R.randrange(0, 21)


def g_math():
    r = R.random()
    if r < 0.62:
        op = pick('++++--**/')
        if op == '+':
            a, b = (
                (small(), small())
                if R.random() < 0.75
                else (R.randrange(10, 90), R.randrange(1, 11) if R.random() < 0.6 else 10 * R.randrange(1, 6))
            )
            c = a + b
            w = 'plus'
        elif op == '-':
            a, b = (small(), small()) if R.random() < 0.8 else (R.randrange(20, 100), R.randrange(1, 11))
            a, b = max(a, b), min(a, b)
            c = a - b
            w = 'minus'
        elif op == '*':
            a, b = R.randrange(0, 13), R.randrange(0, 11)
            c = a * b
            w = 'times'
        else:
            b = R.randrange(1, 11)
            c = R.randrange(0, 11)
            a = b * c
            w = 'divided by'
        s = {'*': pick(['x', '*', '×']), '/': pick(['/', '÷'])}.get(op, op)
        if R.random() < 0.6:
            sp = ' ' if R.random() < 0.8 else ''
            e = f'{a}{sp}{s}{sp}{b}'
            u = (
                alt(
                    'What is {e}?|What is {e}?|What is {e}?|{e}|{e} =|{e} = ?|Calculate {e}.|How much is {e}?|What does {e} make?|Solve {e}.|Can you work out {e}?|Compute {e}'.replace(
                        '/', '\0'
                    ).replace('|', '/')
                )
                .replace('\0', '/')
                .format(e=e)
            )
            return [(noise(u, R.random() < 0.5), f'{a} {s} {b} = {c}.')]
        u = alt(
            'What is {a} {w} {b}?/What is {a} {w} {b}?/How much is {a} {w} {b}?/{a} {w} {b}?/Tell me what {a} {w} {b} is./What is the answer to {a} {w} {b}?/Can you tell me {a} {w} {b}?'
        )
        if R.random() < 0.4:
            u = {
                '+': 'Add {a} and {b}./Can you add {a} and {b}?/What is the sum of {a} and {b}?/What do you get if you add {b} to {a}?/{a} and {b} make what?/How much is {a} and {b} together?/What do {a} and {b} add up to?/Please add {a} and {b} for me.',
                '-': 'Take {b} away from {a}./What is {a} take away {b}?/Subtract {b} from {a}./What is the difference between {a} and {b}?/What do you get for {a} minus {b}?/What is left if you take {b} from {a}?',
                '*': 'Multiply {a} by {b}./What is the product of {a} and {b}?/What do you get for {a} times {b}?/How much is {a} times {b}?/What is {a} multiplied by {b}?/Work out {a} times {b}.',
                '/': 'Divide {a} by {b}./What do you get for {a} divided by {b}?/How many times does {b} go into {a}?/Work out {a} divided by {b}.',
            }[op]
            return [(noise(alt(u).format(a=a, b=b)), f'{a} {w} {b} is {c}.')]
        if max(a, b) <= 12 and R.random() < 0.35:
            return [(noise(cap(u.format(a=NUM[a], b=NUM[b], w=w))), cap(f'{NUM[a]} {w} {NUM[b]} is {NUM[c] if c <= 12 else c}.'))]
        return [(noise(u.format(a=a, b=b, w=w)), f'{a} {w} {b} is {c}.')]
    if r < 0.68:
        a = R.randrange(1, 31)
        return [(noise(alt('What is double {a}?/What is two times {a}?/Double {a}.').format(a=a)), f'Double {a} is {2 * a}.')]
    if r < 0.73:
        a = 2 * R.randrange(1, 26)
        return [(noise(alt('What is half of {a}?/Half of {a}?/What is {a} divided by two?').format(a=a)), f'Half of {a} is {a // 2}.')]
    if r < 0.80:
        a, b = R.sample(range(0, 100), 2)
        big = R.random() < 0.6
        u = alt(
            'Which is bigger, {a} or {b}?/Which number is larger, {a} or {b}?/What is more, {a} or {b}?/Is {a} or {b} bigger?'
            if big
            else 'Which is smaller, {a} or {b}?/Which number is less, {a} or {b}?/Is {a} or {b} smaller?'
        ).format(a=a, b=b)
        x, y = (max(a, b), min(a, b)) if big else (min(a, b), max(a, b))
        return [(noise(u), f'{x} is {"bigger" if big else "smaller"} than {y}.')]
    if r < 0.84:
        a, b = R.sample(range(0, 60), 2)
        return [(noise(f'Is {a} bigger than {b}?'), f'Yes, {a} is bigger than {b}.' if a > b else f'No, {a} is smaller than {b}.')]
    if r < 0.89:
        a = R.randrange(0, 101)
        return [
            (
                noise(alt('Is {a} even or odd?/Is {a} an even number?/Is {a} odd or even?').format(a=a)),
                f'{a} is {"even" if a % 2 == 0 else "odd"}.',
            )
        ]
    if r < 0.95:
        a = R.randrange(0, 99)
        return [
            (
                noise(
                    alt(
                        'What number comes after {a}?/Which number is after {a}?/What comes after {a}?/What is the next number after {a}?'
                    ).format(a=a)
                ),
                f'{a + 1} comes after {a}.',
            )
        ]
    a = R.randrange(1, 100)
    return [(noise(alt('What number comes before {a}?/Which number is before {a}?').format(a=a)), f'{a - 1} comes before {a}.')]


THINGS = 'apples oranges books pens coins cards eggs cookies marbles stamps balls flowers cups shells toys pencils sweets stickers'.split()


def g_wordproblem():
    n = gname()
    n2 = pick([x for x in GENDERED if x != n])
    t = pick(THINGS)
    a = R.randrange(2, 13)
    b = R.randrange(1, 10)
    r = R.random()
    N = lambda k: NUM[k] if k <= 12 and words else str(k)
    words = R.random() < 0.4
    if r < 0.3:
        return [
            (
                noise(
                    alt(
                        '{n} has {a} {t} and buys {b} more. How many {t} does {h} have now?/{n} has {a} {t}. {n2} gives {hm} {b} more. How many {t} does {n} have?/{n} had {a} {t} and then found {b}. How many {t} does {n} have?'
                    ).format(n=n, n2=n2, a=N(a), b=N(b), t=t, h=he(n), hm='him' if n in MALE else 'her'),
                    True,
                ),
                f'{n} has {N(a + b) if a + b <= 12 else a + b} {t}.',
            )
        ]
    if r < 0.6:
        a, b = a + b, b
        return [
            (
                noise(
                    alt(
                        '{n} has {a} {t} and gives away {b}. How many {t} are left?/{n} has {a} {t} and loses {b}. How many {t} are left?/{n} had {a} {t} and gave {b} to {n2}. How many {t} are left?'
                    ).format(n=n, n2=n2, a=N(a) if a <= 12 else a, b=N(b), t=t),
                    True,
                ),
                f'{cap(N(a - b) if a - b <= 12 else str(a - b))} {t} are left.' if a - b != 1 else f'{cap(N(1))} is left.',
            )
        ]
    if r < 0.8:
        a = R.randrange(2, 6)
        return [
            (
                noise(
                    f'There are {N(a)} boxes with {N(b)} {t} in each box. How many {t} are there?'
                    if b > 1
                    else f'I have {N(a)} {t}. You give me one more. How many {t} do I have?',
                    True,
                ),
                (f'There are {N(a * b) if a * b <= 12 else a * b} {t}.' if b > 1 else f'You have {N(a + 1)} {t}.'),
            )
        ]
    return [
        (
            noise(
                alt(
                    'I have {a} {t} and I get {b} more. How many do I have?/If I have {a} {t} and buy {b} more, how many {t} do I have?'
                ).format(a=N(a), b=N(b), t=t),
                True,
            ),
            f'You have {N(a + b) if a + b <= 12 else a + b} {t}.',
        )
    ]


def g_count():
    r = R.random()
    if r < 0.35:
        n = R.randrange(3, 21)
        return [
            (
                noise(
                    alt('Count to {n}./Count from 1 to {n}./Can you count to {n}?/Please count to {n}./Count up to {n}.').format(
                        n=n if n > 12 or R.random() < 0.5 else NUM[n]
                    )
                ),
                ', '.join(map(str, range(1, n + 1))) + '.',
            )
        ]
    if r < 0.6:
        a = R.randrange(2, 60)
        b = a + R.randrange(3, 11)
        return [
            (
                noise(
                    alt(
                        'Count from {a} to {b}./Please count from {a} up to {b}./Start at {a} and count to {b}./Count up from {a} to {b}./Say the numbers from {a} to {b}./Can you count from {a} to {b}?/Write the numbers from {a} to {b}.'
                    ).format(a=a, b=b)
                ),
                ', '.join(map(str, range(a, b + 1))) + '.',
            )
        ]
    if r < 0.75:
        a = R.randrange(3, 16)
        return [
            (
                noise(alt('Count down from {a}./Count backwards from {a}./Count down from {a} to 1.').format(a=a)),
                ', '.join(map(str, range(a, 0, -1))) + '.',
            )
        ]
    if r < 0.87:
        k = pick([2, 5, 10])
        n = R.randrange(4, 10)
        return [
            (
                noise(alt('Count by {w} to {n}./Count in {w} up to {n}.').format(w={2: 'twos', 5: 'fives', 10: 'tens'}[k], n=k * n)),
                ', '.join(str(k * i) for i in range(1, n + 1)) + '.',
            )
        ]
    xs = R.sample(range(1, 60), pick([3, 3, 4]))
    s = ', '.join(map(str, xs))
    q = R.random()
    if q < 0.4:
        return [
            (
                noise(
                    alt('Sort these numbers: {s}./Put these numbers in order: {s}./Sort {s}./Put {s} in order from small to large.').format(
                        s=s
                    )
                ),
                ', '.join(map(str, sorted(xs))) + '.',
            )
        ]
    if q < 0.7:
        return [
            (
                noise(alt('Which number is the largest: {s}?/What is the biggest of {s}?/Find the largest number: {s}.').format(s=s)),
                f'The largest number is {max(xs)}.',
            )
        ]
    return [
        (
            noise(alt('Which number is the smallest: {s}?/What is the smallest of {s}?/Find the smallest number: {s}.').format(s=s)),
            f'The smallest number is {min(xs)}.',
        )
    ]


ALPHA = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'
SPELLW = [bare(x) for x, c, d in DEFS if ' ' not in bare(x) and len(bare(x)) <= 8]


def g_letters():
    r = R.random()
    if r < 0.35:
        i = R.randrange(25)
        return [
            (
                noise(
                    alt('What letter comes after {x}?/Which letter is after {x}?/What comes after {x} in the alphabet?').format(x=ALPHA[i]),
                    R.random() < 0.8,
                ),
                f'{ALPHA[i + 1]} comes after {ALPHA[i]}.',
            )
        ]
    if r < 0.6:
        w = pick(SPELLW)
        return [
            (
                noise(alt('Spell {w}./How do you spell {w}?/Can you spell the word {w}?/Spell the word {w}.').format(w=w)),
                '-'.join(w.upper()) + '.',
            )
        ]
    if r < 0.8:
        w = pick(SPELLW)
        return [
            (
                noise(
                    alt(
                        'What is the first letter of {w}?/Which letter does {w} start with?/With which letter does the word {w} begin?'
                    ).format(w=w)
                ),
                f'The first letter of {w} is {w[0].upper()}.',
            )
        ]
    if r < 0.9:
        w = pick(SPELLW)
        return [
            (
                noise(alt('What is the last letter of {w}?/Which letter does {w} end with?').format(w=w)),
                f'The last letter of {w} is {w[-1].upper()}.',
            )
        ]
    xs = R.sample(SPELLW, 3)
    return [
        (
            noise(alt('Put these words in alphabetical order: {s}./Sort these words: {s}.').format(s=', '.join(xs)), True),
            ', '.join(sorted(xs)) + '.',
        )
    ]


# ---------------------------------------------------------------- sentences with known contents
TIMES = ['at %d o\'clock' % i for i in range(1, 13)] + ['in the morning', 'in the evening', 'in the afternoon']
ACTS = [
    x.split('|')
    for x in 'plant|planted|a tree;break|broke|a window;paint|painted|the door;find|found|a coin;lose|lost|a ring;buy|bought|a new coat;write|wrote|a long letter;visit|visited|the museum;cook|cooked|a big dinner;read|read|an old book;build|built|a small boat;fix|fixed|the bicycle;clean|cleaned|the kitchen;sell|sold|the car;draw|drew|a horse;sing|sang|a song;catch|caught|a fish;win|won|a prize;see|saw|a fox;make|made|a cake;open|opened|a shop;call|called|the doctor;miss|missed|the train;drive|drove|a bus;feed|fed|the ducks;wash|washed|the windows;meet|met|an old friend;climb|climbed|a mountain;learn|learned|a new word;drop|dropped|the eggs'.split(
        ';'
    )
]
PETS = 'dog cat rabbit horse parrot mouse goat pony duck turtle'.split()


def plur(t):
    return dict(PLU).get(t, t + ('es' if t.endswith(('s', 'x', 'ch', 'sh')) else 's'))


def sentence():
    """-> text, [(question, short answer, full answer)], [(false statement question, correct full answer)], fields"""
    n = gname()
    he(n)
    k = R.randrange(17)
    if k == 16:
        k = 13
    if k == 0:
        c, o = pick(F.COLOUR_LIST), pick(F.OBJECTS)
        t = f'{n} has {art(c)} {o}.'
        c2 = pick([x for x in F.COLOUR_LIST if x != c])
        o2 = pick([x for x in F.OBJECTS if x != o])
        return (
            t,
            [
                (f'What colour is the {o}?', cap(c), f'The {o} is {c}.'),
                (f'What does {n} have?', cap(art(c)) + ' ' + o, f'{n} has {art(c)} {o}.'),
                (f'Who has {art(c)} {o}?', n, f'{n} has {art(c)} {o}.'),
            ],
            [
                (f'Is the {o} {c}?', f'Is the {o} {c2}?', f'the {o} is {c}'),
                (f'Does {n} have {art(o)}?', f'Does {n} have {art(o2)}?', f'{n} has {art(o)}'),
            ],
            {'name': n, 'colour': c, 'object': o},
        )
    if k == 1:
        a = R.randrange(3, 90)
        c = pick(F.CITIES)
        t = f'{n} is {a} years old and lives in {c}.'
        c2 = pick([x for x in F.CITIES if x != c])
        a2 = a + pick([-2, -1, 1, 2, 5])
        return (
            t,
            [
                (f'How old is {n}?', str(a), f'{n} is {a} years old.'),
                (f'Where does {n} live?', c, f'{n} lives in {c}.'),
                (f'Who lives in {c}?', n, f'{n} lives in {c}.'),
            ],
            [
                (f'Does {n} live in {c}?', f'Does {n} live in {c2}?', f'{n} lives in {c}'),
                (f'Is {n} {a} years old?', f'Is {n} {a2} years old?', f'{n} is {a} years old'),
            ],
            {'name': n, 'age': a, 'city': c},
        )
    if k == 2:
        j, c = pick(F.JOBS), pick(F.CITIES)
        t = f'{n} is {art(j)} in {c}.'
        j2 = pick([x for x in F.JOBS if x != j])
        c2 = pick([x for x in F.CITIES if x != c])
        return (
            t,
            [
                (f'What is the job of {n}?', cap(j), f'{n} is {art(j)}.'),
                (f'Where does {n} work?', c, f'{n} works in {c}.'),
                (f'Who is {art(j)}?', n, f'{n} is {art(j)}.'),
                (f'What does {n} do?', cap(j), f'{n} is {art(j)}.'),
            ],
            [(f'Is {n} {art(j)}?', f'Is {n} {art(j2)}?', f'{n} is {art(j)}'), (f'Is {n} in {c}?', f'Is {n} in {c2}?', f'{n} is in {c}')],
            {'name': n, 'job': j, 'city': c},
        )
    if k == 3:
        num, th = R.randrange(2, 30), pick(THINGS)
        p = pick(F.PLACES)
        t = f'{n} bought {num} {th} at the {p}.'
        num2 = num + pick([-1, 1, 3])
        p2 = pick([x for x in F.PLACES if x != p])
        return (
            t,
            [
                (f'How many {th} did {n} buy?', str(num), f'{n} bought {num} {th}.'),
                (f'What did {n} buy?', f'{num} {th}', f'{n} bought {num} {th}.'),
                (f'Where did {n} buy the {th}?', f'At the {p}', f'{n} bought the {th} at the {p}.'),
                (f'Who bought {num} {th}?', n, f'{n} bought {num} {th}.'),
            ],
            [(f'Did {n} buy {num} {th}?', f'Did {n} buy {num2} {th}?', f'{n} bought {num} {th}')],
            {'name': n, 'number': num, 'item': th},
        )
    if k == 4:
        d, tm, p = pick(DAYS), pick(TIMES), pick(F.PLACES)
        t = f'{n} goes to the {p} on {d} {tm}.'
        d2 = pick([x for x in DAYS if x != d])
        p2 = pick([x for x in F.PLACES if x != p])
        return (
            t,
            [
                (f'When does {n} go to the {p}?', f'On {d} {tm}', f'{n} goes to the {p} on {d} {tm}.'),
                (f'Where does {n} go on {d}?', f'To the {p}', f'{n} goes to the {p} on {d}.'),
                (f'On which day does {n} go to the {p}?', d, f'{n} goes to the {p} on {d}.'),
            ],
            [
                (f'Does {n} go to the {p} on {d}?', f'Does {n} go to the {p} on {d2}?', f'{n} goes to the {p} on {d}'),
                (f'Does {n} go to the {p}?', f'Does {n} go to the {p2}?', f'{n} goes to the {p}'),
            ],
            {'name': n, 'day': d, 'place': p},
        )
    if k == 5:
        a = pick(PETS)
        pn = name()
        c = pick(F.COLOUR_LIST)
        t = f'{n} has a {c} {a} called {pn}.' if c[0] not in 'aeiou' else f'{n} has an {c} {a} called {pn}.'
        a2 = pick([x for x in PETS if x != a])
        return (
            t,
            [
                (f'What is the name of the {a}?', pn, f'The {a} is called {pn}.'),
                (f'What pet does {n} have?', cap(art(a)), f'{n} has {art(a)}.'),
                (f'What colour is the {a}?', cap(c), f'The {a} is {c}.'),
                (f'Who has {art(a)}?', n, f'{n} has {art(a)}.'),
            ],
            [(f'Does {n} have {art(a)}?', f'Does {n} have {art(a2)}?', f'{n} has {art(a)}')],
            {'owner': n, 'animal': a, 'pet': pn},
        )
    if k == 6:
        f, f2 = R.sample(F.FOODS, 2)
        t = f'{n} likes {f} but does not like {f2}.'
        return (
            t,
            [(f'What does {n} like?', cap(f), f'{n} likes {f}.'), (f'What does {n} not like?', cap(f2), f'{n} does not like {f2}.')],
            [(f'Does {n} like {f}?', f'Does {n} like {f2}?', f'{n} likes {f}')],
            {'name': n, 'likes': f, 'dislikes': f2},
        )
    if k == 7:
        o, p = pick(F.OBJECTS), pick(F.PLACES)
        t = f'{n} left {his(n)} {o} in the {p}.'
        p2 = pick([x for x in F.PLACES if x != p])
        o2 = pick([x for x in F.OBJECTS if x != o])
        return (
            t,
            [
                (f'Where is the {o}?', f'In the {p}', f'The {o} is in the {p}.'),
                (f'What did {n} leave in the {p}?', f'{cap(his(n))} {o}', f'{n} left {his(n)} {o} in the {p}.'),
                (f'Who left the {o} in the {p}?', n, f'{n} left the {o} in the {p}.'),
            ],
            [(f'Is the {o} in the {p}?', f'Is the {o} in the {p2}?', f'the {o} is in the {p}')],
            {'name': n, 'object': o, 'place': p},
        )
    if k == 8:
        m = pick([x for x in GENDERED if x != n])
        o = pick(F.OBJECTS)
        p = pick(F.PLACES)
        t = f'{n} gave {m} {art(o)} in the {p}.'
        return (
            t,
            [
                (f'Who gave {m} {art(o)}?', n, f'{n} gave {m} {art(o)}.'),
                (f'What did {n} give {m}?', cap(art(o)), f'{n} gave {m} {art(o)}.'),
                (f'Where did {n} give {m} {art(o)}?', f'In the {p}', f'It was in the {p}.'),
                (f'Who got {art(o)}?', m, f'{m} got {art(o)}.'),
            ],
            [(f'Did {n} give {m} {art(o)}?', f'Did {m} give {n} {art(o)}?', f'{n} gave {m} {art(o)}')],
            {'from': n, 'to': m, 'object': o},
        )
    if k == 9:
        mo = R.randrange(12)
        day = R.randrange(1, MLEN[mo] + 1)
        ev = pick(['The meeting', 'The party', 'The concert', 'The exam', 'The wedding', 'The match', 'The film', 'The market'])
        p = pick(F.CITIES)
        t = f'{ev} is on {MONTHS[mo]} {day} in {p}.'
        m2 = pick([x for x in MONTHS if x != MONTHS[mo]])
        return (
            t,
            [
                (f'When is {ev.lower()}?', f'On {MONTHS[mo]} {day}', f'{ev} is on {MONTHS[mo]} {day}.'),
                (f'Where is {ev.lower()}?', f'In {p}', f'{ev} is in {p}.'),
                (f'In which month is {ev.lower()}?', MONTHS[mo], f'{ev} is in {MONTHS[mo]}.'),
            ],
            [(f'Is {ev.lower()} in {MONTHS[mo]}?', f'Is {ev.lower()} in {m2}?', f'{ev.lower()} is in {MONTHS[mo]}')],
            {'event': ev[4:], 'date': f'{MONTHS[mo]} {day}', 'city': p},
        )
    if k == 10:
        o = pick(F.OBJECTS)
        pr = R.randrange(2, 100)
        cur = pick(['dollars', 'pounds', 'euros'])
        t = f'The {o} costs {pr} {cur}.'
        p2 = pr + pick([1, 2, 5, 10])
        return (
            t,
            [
                (f'How much does the {o} cost?', f'{pr} {cur}', f'The {o} costs {pr} {cur}.'),
                (f'What is the price of the {o}?', f'{pr} {cur}', f'The {o} costs {pr} {cur}.'),
                (f'What costs {pr} {cur}?', f'The {o}', f'The {o} costs {pr} {cur}.'),
            ],
            [(f'Does the {o} cost {pr} {cur}?', f'Does the {o} cost {p2} {cur}?', f'the {o} costs {pr} {cur}')],
            {'item': o, 'price': pr, 'currency': cur},
        )
    if k == 11:
        h, d = pick(F.HOBBIES), pick(DAYS)
        m = pick([x for x in GENDERED if x != n])
        t = f'{n} and {m} enjoy {h} on {d}.'
        h2 = pick([x for x in F.HOBBIES if x != h])
        return (
            t,
            [
                (f'What do {n} and {m} enjoy?', cap(h), f'They enjoy {h}.'),
                (f'When do they enjoy {h}?', f'On {d}', f'They enjoy {h} on {d}.'),
                (f'Who enjoys {h}?', f'{n} and {m}', f'{n} and {m} enjoy {h}.'),
            ],
            [(f'Do they enjoy {h}?', f'Do they enjoy {h2}?', f'they enjoy {h}')],
            {'people': [n, m], 'hobby': h, 'day': d},
        )
    if k == 13:
        inf, v, o = pick(ACTS)
        wh = pick(['Yesterday', 'Last week', 'This morning', 'On ' + pick(DAYS), 'Last summer', 'Today'])
        low = wh[0].lower() + wh[1:]
        t = f'{wh} {n} {v} {o}.' if R.random() < 0.6 else f'{n} {v} {o} {low}.'
        i2, v2, o2 = pick([x for x in ACTS if x[2] != o])
        m = pick([x for x in GENDERED if x != n])
        return (
            t,
            [
                (f'Who {v} {o}?', n, f'{n} {v} {o}.'),
                (f'What did {n} do?', f'{n} {v} {o}', f'{n} {v} {o}.'),
                (f'When did {n} {inf} {o}?', wh, f'{n} {v} {o} {low}.'),
                ('Whose name is in the text?', n, f'The name is {n}.'),
                ('Which name do you see?', n, f'The name is {n}.'),
                ('Who is this about?', n, f'It is about {n}.'),
            ],
            [
                (f'Did {n} {inf} {o}?', f'Did {n} {i2} {o2}?', f'{n} {v} {o}'),
                (f'Did {n} {inf} {o}?', f'Did {m} {inf} {o}?', f'{n} {v} {o}'),
            ],
            {'name': n, 'time': wh},
        )
    if k == 14:
        th = pick(['bus', 'train', 'plane', 'film', 'lesson', 'meeting', 'concert', 'match', 'show', 'shop', 'class', 'boat'])
        v = 'leaves' if th in ('bus', 'train', 'plane', 'boat') else 'opens' if th == 'shop' else 'starts'
        h = R.randrange(1, 13)
        h2 = pick([x for x in range(1, 13) if x != h])
        d = pick(DAYS + [''])
        t = f'The {th} {v} at {h}' + (f' on {d}.' if d else '.')
        return (
            t,
            [
                (f'When does the {th} {v[:-1]}?', f'At {h}', f'The {th} {v} at {h}.'),
                (f'What {v} at {h}?', f'The {th}', f'The {th} {v} at {h}.'),
                (f'At what time does the {th} {v[:-1]}?', f'At {h}', f'The {th} {v} at {h}.'),
            ],
            [(f'Does the {th} {v[:-1]} at {h}?', f'Does the {th} {v[:-1]} at {h2}?', f'the {th} {v} at {h}')],
            {'event': th, 'time': h},
        )
    ph = '%d%d%d-%d%d%d%d' % tuple(R.randrange(10) for _ in range(7))
    t = f'You can call {n} at {ph}.'
    return (
        t,
        [
            (f'What is the phone number of {n}?', ph, f'The phone number of {n} is {ph}.'),
            ('What is the phone number?', ph, f'The phone number is {ph}.'),
            ('Whom can I call?', n, f'You can call {n}.'),
        ],
        [(f'Can I call {n}?', f'Can I call {pick([x for x in GENDERED if x != n])}?', f'you can call {n}')],
        {'name': n, 'phone': ph},
    )


def frame(t, q):
    return (
        alt(
            '{t} {q}|{t} {q}|{t}\n{q}|Text: {t}\nQuestion: {q}|Read this: "{t}" {q}|"{t}" {q}|{q} "{t}"|Here is a sentence: {t} {q}|Read the sentence and answer. {t} {q}|Context: {t}\n\n{q}|{q} {t}'.replace(
                '/', '\0'
            ).replace('|', '/')
        )
        .replace('\0', '/')
        .format(t=t, q=q)
    )


def g_extract():
    t, qs, yn, f = sentence()
    if R.random() < 0.35:  # two sentences, question about one
        t2 = sentence()[0]
        t = t + ' ' + t2 if R.random() < 0.5 else t2 + ' ' + t
    q, s, full = pick(qs)
    if R.random() < 0.12:
        return [
            (
                frame(t, q + ' ' + alt('Answer in one word./Just the answer./Short answer please./Answer briefly.')),
                s + ('.' if R.random() < 0.5 else ''),
            )
        ]
    u = frame(t, q)
    return [(noise(u, True) if R.random() < 0.5 else u, full)]


def g_yesno():
    t, qs, yn, f = sentence()
    a, b, full = pick(yn)
    if R.random() < 0.15:
        t = t + ' ' + sentence()[0]
    yes = R.random() < 0.5
    u = frame(t, (a if yes else b) + pick(['', '', '', ' Yes or no?', ' Answer yes or no.', ' Is that true?']))
    return [(noise(u, True) if R.random() < 0.5 else u, ('Yes, ' if yes else 'No, ') + full + '.')]


def g_notsaid():
    t, qs, yn, f = sentence()
    n = f.get('name') or f.get('owner')
    if not n:
        return g_extract()
    known = set(f)
    cand = [
        q
        for k, q in (
            ('age', f'How old is {n}?'),
            ('city', f'Where does {n} live?'),
            ('job', f'What is the job of {n}?'),
            ('x', f'What is the last name of {n}?'),
            ('x', f'How tall is {n}?'),
            ('phone', f'What is the phone number of {n}?'),
            ('x', f'What is the favourite film of {n}?'),
            ('x', f'When was {n} born?'),
        )
        if k not in known
    ]
    u = frame(t, pick(cand))
    return [(noise(u, True) if R.random() < 0.4 else u, 'The text does not say that.')]


def g_pull():
    t, qs, yn, f = sentence()
    R.random()
    key = pick([k for k in f if not isinstance(f[k], list)])
    v = f[key]
    if key in ('likes', 'dislikes'):
        key2 = 'food that %s %s' % (f['name'], 'likes' if key == 'likes' else 'does not like')
    else:
        key2 = {
            'from': 'name of the giver',
            'to': 'name of the person who got something',
            'pet': 'name of the pet',
            'owner': 'name of the owner',
        }.get(key, key)
    u = alt(
        'Find the {k} in this sentence: {t}|What is the {k} in this sentence? {t}|Extract the {k}: {t}|Take the {k} out of this text: "{t}"|Which {k} is in this sentence: "{t}"|Give me only the {k}: {t}|Extract the {k} from: {t}|What is the {k} here? {t}|Tell me the {k}: {t}|{t} What is the {k}?|Read "{t}" and give me the {k}.'.replace(
            '|', '/'
        )
    ).format(k=key2, t=t)
    return [
        (u if R.random() < 0.7 else noise(u, True), str(v) if R.random() < 0.7 or key2.startswith('food') else 'The %s is %s.' % (key2, v))
    ]


def J(o):
    return json.dumps(o, ensure_ascii=False)


def g_json():
    r = R.random()
    if r < 0.5:
        t, qs, yn, f = sentence()
        ks = list(f)
        if R.random() < 0.4:
            ks = R.sample(ks, 2)
        u = alt(
            'Answer in JSON with the keys {k}: {t}|Extract {k} as JSON: {t}|Give me {k} as JSON. {t}|Return JSON with {k} for this text: "{t}"|{t} Write {k} as JSON.|Turn this into JSON with the keys {k}: {t}|Make JSON with {k} from: {t}|Put {k} into JSON: {t}|Put the {k} of this text in JSON: {t}|Write this as JSON with {k}: {t}|JSON please, with {k}: {t}|Turn {k} into JSON: {t}|I need {k} in JSON. {t}'.replace(
                '|', '/'
            )
        ).format(k=join(ks), t=t)
        return [(u, J({k: f[k] for k in ks}))]
    if r < 0.65:
        c, k, cont = pick(CAPS)
        return [
            (
                noise(
                    alt(
                        'What is the capital of {c}? Answer in JSON./Give me the capital of {c} as JSON./JSON: country and capital for {c}./Write {c} and its capital as JSON.'
                    ).format(c=c),
                    True,
                ),
                J({'country': c.replace('the ', ''), 'capital': k}),
            )
        ]
    if r < 0.75:
        a, b = small(), small()
        return [
            (
                noise(
                    alt(
                        'What is {a} + {b}? Answer in JSON./Answer in JSON: what is {a} + {b}?/Give me the result of {a} + {b} as JSON.'
                    ).format(a=a, b=b),
                    True,
                ),
                J({'answer': a + b}),
            )
        ]
    if r < 0.88:
        c = pick([k for k in LISTC if len(BYCLASS[k]) >= 4])
        n = pick([2, 3, 3, 4])
        xs = R.sample([bare(x) for x in BYCLASS[c]], n)
        return [
            (
                noise(
                    alt(
                        'Give me a JSON list of {n} {p}./List {n} {p} as JSON./Name {n} {p}. Answer as a JSON array./Return a JSON array with {n} {p}.'
                    ).format(n=NUM[n], p=LISTC[c]),
                    True,
                ),
                J(xs),
            )
        ]
    n, a = name(), R.randrange(3, 90)
    return [
        (
            noise(
                alt(
                    'Write JSON for a person called {n} who is {a}./Make a JSON object with the name {n} and the age {a}./JSON for {n}, {a} years old.'
                ).format(n=n, a=a),
                True,
            ),
            J({'name': n, 'age': a}),
        )
    ]


# ---------------------------------------------------------------- rewriting
VERBP = [
    ('open', 'the door window box book letter bag'),
    ('close', 'the door window box book'),
    ('bring', 'me the book a_cup_of_tea my_coat some_water the_newspaper the_keys'),
    ('give', 'me the_pen the_salt your_number a_minute the_book more_time an_answer'),
    ('send', 'me the_report the_file a_letter the_photos the_bill an_email'),
    ('help', 'me them us'),
    ('wait', 'here outside a_moment for_me'),
    ('come', 'here in home with_me back'),
    ('clean', 'the_kitchen your_room the_table the_car'),
    ('turn off', 'the_light the_music the_television'),
    ('turn on', 'the_light the_radio the_heater'),
    ('call', 'me him the_doctor your_mother'),
    ('write', 'your_name a_letter an_email the_answer'),
    ('read', 'this_page the_letter the_text the_story'),
    ('move', 'your_car the_chair that_box'),
    ('pass', 'me the_salt the_butter the_water the_ball'),
    ('tell', 'me the_truth your_name the_time a_story'),
    ('speak', 'more_slowly louder quietly'),
    ('be', 'quiet on_time careful'),
    ('stop', 'talking that_noise shouting'),
    ('sit', 'down here over_there'),
    ('check', 'the_list my_work the_numbers'),
    ('buy', 'some_milk two_tickets some_bread'),
    ('wash', 'the_dishes your_hands the_car'),
    ('finish', 'the_work your_homework the_report'),
    ('show', 'me the_way your_ticket the_picture the_map'),
    ('carry', 'this_bag the_boxes'),
    ('answer', 'the_phone my_question the_door'),
    ('explain', 'this_word the_rule the_problem'),
    ('fix', 'the_car the_roof my_computer'),
]
ME = {'bring', 'give', 'send', 'pass', 'tell', 'show'}


def command():
    v, objs = pick(VERBP)
    objs = [o.replace('_', ' ') for o in objs.split()]
    if v in ME:
        o = 'me ' + pick(objs[1:])
    elif v in ('open', 'close'):
        o = 'the ' + pick(objs[1:])
    else:
        o = pick(objs)
    o = re.sub(r'^me the$', 'me the book', o)
    return v + ' ' + o


ADJS = 'big small old new happy sad red blue cold hot nice clean dirty tall quiet loud fast slow strong kind tired hungry angry busy empty full heavy soft'.split()
SUBJ = 'dog cat house car book man woman child teacher garden river door room box cake soup train boy girl bird tree shop street horse bag'.split()


def statement():
    """-> positive, question, negative (present tense)"""
    r = R.random()
    if r < 0.35:
        s, a = 'the ' + pick(SUBJ), pick(ADJS)
        return f'{cap(s)} is {a}.', f'Is {s} {a}?', f'{cap(s)} is not {a}.'
    if r < 0.5:
        a = pick('tired hungry happy late ready busy sick alone'.split())
        s = pick(['they', 'we', 'you'])
        return f'{cap(s)} are {a}.', f'Are {s} {a}?', f'{cap(s)} are not {a}.'
    if r < 0.75:
        n = gname()
        v, o = pick(
            [
                ('like', pick(F.FOODS)),
                ('live', 'in ' + pick(F.CITIES)),
                ('play', pick(['football', 'tennis', 'chess', 'the piano'])),
                ('work', 'in a ' + pick(['shop', 'school', 'hospital', 'bank', 'library'])),
                ('drink', pick(['tea', 'coffee', 'milk', 'juice'])),
                ('read', pick(['books', 'the newspaper', 'stories'])),
                ('speak', pick(['English', 'French', 'German', 'Spanish'])),
                ('want', art(pick(F.OBJECTS))),
                ('need', art(pick(F.OBJECTS))),
            ]
        )
        return f'{n} {v}s {o}.', f'Does {n} {v} {o}?', f'{n} does not {v} {o}.'
    if r < 0.88:
        n = gname()
        p = pick(F.PLACES)
        return f'{n} is in the {p}.', f'Is {n} in the {p}?', f'{n} is not in the {p}.'
    n = gname()
    v = pick(['swim', 'dance', 'sing', 'cook', 'drive', 'ride a horse', 'play the guitar', 'speak French', 'run fast', 'read', 'write'])
    return f'{n} can {v}.', f'Can {n} {v}?', f'{n} cannot {v}.'


def q_(s):
    r = R.random()
    return '"%s"' % s if r < 0.4 else s


def g_rewrite():
    r = R.random()
    if r < 0.3:
        c = command()
        s = cap(c) + pick(['.', '!', '.'])
        u = alt(
            'Make this polite: {s}|Make this more polite: {s}|Rewrite this politely: {s}|Say this politely: {s}|How can I say this in a polite way? {s}|Please make this sentence polite: {s}|Make it polite: {s}|Rewrite as a polite request: {s}|Make this sentence polite: {s}|Make this sentence more polite: {s}|Can you make this more polite? {s}|Put this politely: {s}|Turn this into a polite sentence: {s}'.replace(
                '|', '/'
            )
        ).format(s=q_(s))
        return [(noise(u, True) if R.random() < 0.3 else u, alt('Could you please {c}?').format(c=c))]
    p, q, n = statement()
    if r < 0.55:
        u = alt(
            'Make this a question: {s}|Turn this into a question: {s}|Change this sentence into a question: {s}|Rewrite this as a question: {s}|Make it a question: {s}|Ask this as a question: {s}|Change this to a question: {s}|Write this as a question: {s}|Form a question from this: {s}'.replace(
                '|', '/'
            )
        ).format(s=q_(p))
        return [(noise(u, True) if R.random() < 0.2 else u, q)]
    if r < 0.7:
        u = alt(
            'Make this negative: {s}|Write the negative form: {s}|Say the opposite with not: {s}|Change this to a negative sentence: {s}|Put not into this sentence: {s}'.replace(
                '|', '/'
            )
        ).format(s=q_(p))
        return [(u, n)]
    if r < 0.8:
        s = pick([p, n, cap(command()) + '.'])
        bad = s[:1].lower() + s[1:-1]
        u = alt(
            'Fix this sentence: {s}|Correct this: {s}|Add a capital letter and a full stop: {s}|Please correct this sentence: {s}'.replace(
                '|', '/'
            )
        ).format(s=q_(bad))
        return [(u, s)]
    if r < 0.92:
        a, b = pick(
            [
                x
                for x in PAST
                if x[0]
                in 'go eat see run come take make write sing swim drink sleep buy read walk play jump work talk cook dance clean wash paint sit speak'.split()
            ]
        )
        tail = {
            'go': 'to school',
            'eat': 'an apple',
            'see': 'a bird',
            'run': 'home',
            'come': 'late',
            'take': 'the bus',
            'make': 'a cake',
            'write': 'a letter',
            'sing': 'a song',
            'swim': 'in the lake',
            'drink': 'tea',
            'sleep': 'well',
            'buy': 'bread',
            'read': 'a book',
            'walk': 'to the park',
            'play': 'chess',
            'jump': 'over the wall',
            'work': 'in a shop',
            'talk': 'to a friend',
            'cook': 'dinner',
            'dance': 'all night',
            'clean': 'the house',
            'wash': 'the car',
            'paint': 'the door',
            'sit': 'in the garden',
            'speak': 'to the teacher',
        }[a]
        s = pick(['I', 'We', 'They', 'You'])
        u = alt(
            'Put this in the past tense: {s}|Write this in the past: {s}|Change to the past tense: {s}|Say this in the past: {s}'.replace(
                '|', '/'
            )
        ).format(s=q_(f'{s} {a} {tail}.'))
        return [(u, f'{s} {b} {tail}.')]
    a, b = pick(
        [
            x
            for x in PLU
            if x[0] in 'cat dog book car tree house apple bird chair table flower horse cup door hat child mouse box knife baby'.split()
        ]
    )
    u = alt('Make this plural: {s}|Write this in the plural: {s}'.replace('|', '/')).format(s=q_(f'I have {art(a)}.'))
    return [(u, f'I have two {b}.')]


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
        s = pick(F.WORDS_MADEUP)
    if R.random() < 0.3:
        s = (
            pick(
                'OK|ok|yes|no|pong|hello|done|ready|Hello, world!|test|banana|I am here|good morning|42|thank you|stop|blue|one two three'.split(
                    '|'
                )
            )
            if R.random() < 0.6
            else s
        )
        return [
            (
                alt(
                    'Reply with exactly: {s}|Answer only with: {s}|Respond with "{s}"|Just say {s}|Reply with the word {s}|Only write: {s}|Say {s} and nothing else|Answer with "{s}" only|Print {s}|Output: {s}'.replace(
                        '|', '/'
                    )
                ).format(s=s),
                s,
            )
        ]
    u = alt(
        'Repeat after me: {s}|Say this: {s}|Repeat: {s}|Please repeat: {s}|Say "{s}"|Repeat this: {s}|Write this: {s}|Copy this: {s}'.replace(
            '|', '/'
        )
    ).format(s=s)
    return [(u, s)]


# ---------------------------------------------------------------- stories, poems, fun
STORY_X = 'robot dragon king queen princess boy girl child teacher farmer sailor wizard giant tree star'.split()
STORY_ANI = [(a[0], a[3]) for a in ANI if ' ' not in a[0] or a[0] == 'polar bear']
TRAIT = 'little big old young clever brave shy kind happy lonely curious tired funny quiet hungry'.split()
FEEL = 'happy proud glad thankful calm cheerful'.split()
WEA = [
    'One sunny morning',
    'One cold winter day',
    'One rainy evening',
    'One quiet night',
    'One warm summer day',
    'One windy afternoon',
    'One day',
    'Early one morning',
    'Late one evening',
]
LESSON = [
    'From that day on, they were best friends.',
    'After that, they met every day.',
    'And they lived happily ever after.',
    'It was the best day of the year.',
    'That night, everyone slept well.',
    'And from that day on, nobody was alone.',
]


def story(ani=None, nm=None, obj=None, place=None):
    a = ani or pick(STORY_ANI)[0]
    b = pick([x[0] for x in STORY_ANI if x[0] != a])
    n = nm or gname()
    H = he(n)
    tr, tr2 = R.sample(TRAIT, 2)
    o = obj or pick(F.OBJECTS)
    p = place or pick(F.PLACES)
    c = pick(F.COLOUR_LIST)
    f = pick(FEEL)
    w = pick(WEA)
    l = pick(LESSON)
    k = R.randrange(11)
    m = pick([x for x in GENDERED if x != n])
    food = pick([x for x in F.FOODS])
    if nm and ani:
        k = pick([1, 3, 4, 7])
    elif nm:
        k = pick([1, 3, 4, 5, 7, 8, 10])
    elif ani:
        k = pick([0, 2, 6, 9, 3, 7])
    if obj:
        k = pick([3, 5, 8])
    if k == 0:
        return (
            f'Once upon a time, there was a {tr} {a} who lived near a {p}. {w}, the {a} met a {tr2} {b}. "Why are you alone?" asked the {b}. "I have no friends," said the {a}. "Then I will be your friend," said the {b}. {l}'
            if tr[0] not in 'aeiou' and p[0] not in 'aeiou' and tr2[0] not in 'aeiou'
            else f'There was once {art(tr)} {a} who lived near {art(p)}. {w}, the {a} met {art(tr2)} {b}. They talked and played until it was dark. {l}'
        )
    if k == 1:
        return f'{n} lived in a small house near the {p}. {w}, {H} found {art(a)} at the door. The {a} was cold and hungry, so {n} gave it {food} and a warm blanket. The next day the {a} felt much better. {n} was very {f}, and the {a} stayed with {"him" if n in MALE else "her"} for ever.'
    if k == 2:
        return (
            f'A {a} and a {b} wanted to see who was faster. {w}, they ran from the {p} to the river. The {b} was fast, but it stopped to rest. The {a} went on slowly and did not stop. In the end, the {a} won, and everyone was surprised.'
            if a[0] not in 'aeiou' and b[0] not in 'aeiou'
            else f'{cap(art(a))} and {art(b)} wanted to see who was faster. They ran from the {p} to the river. The {b} stopped to rest, but the {a} did not stop. In the end, the {a} won.'
        )
    if k == 3:
        return f'{w}, {n} went for a walk to the {p}. There {H} saw {art(a)} with {art(c)} {o}. "Is this your {o}?" asked the {a}. "Yes, I lost it last week," said {n}. {cap(H)} thanked the {a} and gave it some {food}. They were both very {f}.'
    if k == 4:
        return (
            f'{n} had a {tr} {a}. {w}, the {a} ran away. {n} looked in the {p}, in the garden and in the street, but could not find it. Then {H} heard a soft sound under the bed. There it was, fast asleep! {n} laughed and felt {f}.'
            if tr[0] not in 'aeiou'
            else f'{n} had {art(tr)} {a}. {w}, the {a} ran away. {n} looked everywhere, and at last {H} found it under the bed. {n} laughed and felt {f}.'
        )
    if k == 5:
        return f'{n} wanted {art(c)} {o} more than anything. {cap(H)} worked in the {p} every day and saved {his(n)} money. {w}, {H} had enough and went to the shop. On the way {H} met {m}, who had no money for food. {n} gave {m} the money and went home without the {o}. {cap(H)} had nothing, but {H} felt {f}.'
    if k == 6:
        return f'High in the hills lived {art(tr)} {a}. Every night it looked at the moon and wished for a friend. {w}, {art(b)} came by and asked for help. The {a} showed it the way to the {p}. "Thank you," said the {b}. "Will you come with me?" So they went on together. {l}'
    if k == 7:
        return (
            f'{w}, a {tr} {a} came to the {p}. Nobody knew where it came from. {n} was not afraid and said hello. "I am lost," said the {a}. {n} helped it to find the way home. The family of the {a} was {f}, and they gave {n} {art(c)} {o}.'
            if tr[0] not in 'aeiou'
            else f'{w}, {art(tr)} {a} came to the {p}. {n} was not afraid and said hello. "I am lost," said the {a}. {n} helped it to find the way home, and the {a} was very {f}.'
        )
    if k == 8:
        return f'{n} found an old map in the {p}. It showed the way to {art(c)} {o}. {n} and {his(n)} friend {m} walked all day, over a hill and across a river. At last they found a small box under a tree. In the box was the {o}. They were tired but very {f}.'
    if k == 9:
        return f'The {a} could not sleep. It counted the stars, but that did not help. {w}, the {b} next door began to sing a soft song. The {a} listened, closed its eyes and soon fell asleep. The next day it brought the {b} some {food} to say thank you.'
    return f'{n} was afraid of the dark. {w}, the lights went out in the whole {p}. {n} heard {m} cry, so {H} took {"his" if n in MALE else "her"} friend by the hand. "Do not be afraid," said {n}. Together they found a candle and lit it. After that, {n} was never afraid of the dark again.'


def g_story():
    r = R.random()
    p = alt(
        'Tell me a story/Tell me a short story/Tell me a little story/Tell me a nice story/Please write a small story/Write a short story/Write a story/Can you tell me a story/Please tell me a short story/I want to hear a story/Tell a story/Make up a story/Give me a short story'
    )
    end = '?' if p.startswith('Can') else '.'
    if r < 0.3:
        return [(noise(p + end), story())]
    if r < 0.6:
        a = pick(STORY_ANI)[0] if R.random() < 0.7 else pick(STORY_X)
        return [(noise(f'{p} about {art(a)}{end}'), story(ani=a))]
    if r < 0.75:
        n = gname()
        return [(noise(f'{p} about {alt("a boy/a child") if False else ""}{n}{end}', True), story(nm=n))]
    if r < 0.9:
        n = gname()
        a = pick(STORY_ANI)[0]
        g = 'boy' if n in MALE else 'girl'
        who = pick(
            [
                f'{n} and {art(a)}',
                f'{n} and {art(a)}',
                f'{art(a)} and {n}',
                f'a {g} called {n} and {art(a)}',
                f'{art(a)} and a {g} called {n}',
                f'{art(a)} and a {g} named {n}',
                f'a {g} named {n} who met {art(a)}',
            ]
        )
        return [(noise(f'{p} about {who}{end}', True), story(ani=a, nm=n))]
    o = pick(F.OBJECTS)
    return [(noise(f'{p} about {art(o)}{end}'), story(obj=o))]


POEMS = F.POEMS.split('\n---\n')
HAIKU = [l.split('|') for l in F.HAIKU.split('\n')]
POEM_T = 'spring summer autumn winter'.split()


def g_poem():
    r = R.random()
    if r < 0.2:
        x, h = pick(HAIKU)
        return [
            (
                noise(
                    alt(
                        'Write a haiku about {x}./Can you write a haiku about {x}?/Give me a haiku about {x}./Write me a haiku about {x}.'
                    ).format(x=x)
                    if R.random() < 0.8
                    else alt('Write a haiku./Can you write a haiku?/Give me a haiku.')
                ),
                h.replace('/', '\n'),
            )
        ]
    ask = alt(
        'Write a poem about {x}./Write a short poem about {x}./Tell me a poem about {x}./Can you write a poem about {x}?/Make a poem about {x}.'
    )
    if r < 0.35:
        x = pick(POEM_T + ['the sun', 'music', 'love', 'the moon', 'friendship', 'hope', 'rain', 'the sea'])
        y = pick(['The stars', 'The clouds', 'The days', 'The years'])
        p = POEMS[0].format(A=cap(x), B=y) if x not in POEM_T or R.random() < 0.3 else POEMS[1].format(a=x)
        return [(noise(ask.format(x=x)), p)]
    a = pick(['bird', 'butterfly', 'cat', 'fox', 'mouse', 'rabbit', 'duck', 'owl', 'deer', 'squirrel', 'bee', 'frog', 'dog', 'horse'])
    i = pick([2, 3, 4])
    t = POEMS[i].format(xa=art(a), a=a, XA=cap(art(a)))
    return [
        (
            noise(ask.format(x=pick([art(a), art(a), art(a), a + 's' if a not in ('fox', 'mouse', 'deer', 'butterfly') else art(a)])))
            if R.random() < 0.85
            else noise(alt('Write a poem./Write me a short poem./Can you write a poem?/Tell me a poem.')),
            t,
        )
    ]


def g_fun():
    r = R.random()
    if r < 0.4:
        return [
            (
                noise(
                    alt(
                        'Tell me a joke./Do you know a joke?/Make me laugh./Tell me something funny./Another joke, please./Can you tell me a joke?/I want to hear a joke./Joke, please./Say something funny.'
                    )
                ),
                pick(JOKES),
            )
        ]
    if r < 0.7:
        return [
            (
                noise(
                    alt(
                        'Tell me a fun fact./Tell me something interesting./Do you know a fun fact?/Give me an interesting fact./Tell me something new./Surprise me./Teach me something./Tell me a fact.'
                    )
                ),
                pick(FUN),
            )
        ]
    q, a = pick(RIDDLES)
    return [
        (noise(alt('Tell me a riddle./Do you know a riddle?/Give me a riddle./Ask me a riddle./Can you ask me a riddle?')), q),
        (
            noise(alt('I do not know./What is it?/Tell me the answer./I give up./What is the answer?/No idea.')),
            f'The answer is: {a[0].lower() + a[1:]}',
        ),
    ]


def g_howto():
    h, a = pick(HOW)
    you = h
    return [
        (
            noise(
                alt(
                    'How do I {h}?/How can I {h}?/How do I {h}?/Tell me how to {h2}./Can you tell me how to {h2}?/What is the best way to {h2}?/Explain how to {h2}./I want to {h}. How do I do that?/Give me steps to {h2}.'
                ).format(h=h, h2=you)
            ),
            a,
        )
    ]


# ---------------------------------------------------------------- limits
UNKNOWN = """What time is it?|What is the time right now?|Have you got the time?|Tell me what time it is.|Do you know what time it is?|Do you know the time?|What is the time now?|Can you tell me the time?;I do not know the time. I have no clock.
What day is it today?|What is the date today?|What is today's date?|Which year is it?|What month is it?|What is the date?;I do not know the date. I have no calendar.
What is the weather like today?|How is the weather?|Will it rain tomorrow?|How will the weather be in {city} tomorrow?|What will the weather be tomorrow?|Do I need an umbrella today?|Tell me the weather in {city}.|What is the weather in {city}?|Is it cold in {city} today?|Is it raining in {city}?|Will it be sunny this weekend?;I do not know the weather, because I cannot look things up.
What is in the news?|What happened today?|Tell me the latest news.|What is the news from {city}?|What happened in {city} yesterday?;I do not know the news. I work offline and cannot look things up.
Who won the game yesterday?|Who won the match last night?|What was the score in {city}?|Who will win the next World Cup?|Who won the last election?;I do not know. I cannot look up results.
What is the price of gold?|How much is a house in {city}?|What is the price of bitcoin?|How much does a flight to {city} cost?|What is the stock price today?;I do not know prices. Please look it up.
What is my name?|Do you know my name?|Who am I?;I do not know your name yet. What is your name?
How old am I?|Do you know my age?|When is my birthday?|What is my birthday?;I do not know that. You have not told me.
Where do I live?|What is my address?|What is my phone number?|What is my password?|What is my favourite colour?|What is the name of my dog?|What did I eat yesterday?|Where are my keys?|What am I thinking?|What is my mother's name?|What is in my pocket?|What am I wearing?;I do not know that. You have not told me.
What will happen tomorrow?|Can you see the future?|Will I be rich?|What are the lottery numbers?|Who will I marry?|Will I pass my exam?|What will the world be like in 100 years?;I do not know the future.
What is the best restaurant in {city}?|Where can I eat in {city}?|Which hotel in {city} is good?|What is the phone number of {name}?|Where is {name} now?|Who is {name}?|How old is {name}?|Who is my neighbour?|How far is {city} from {city2}?|How many people live in {city}?|Who is the mayor of {city}?;I do not know that, sorry.
Book a table for two.|Book a flight to {city}.|Call {name}.|Send an email to {name}.|Set an alarm for seven.|Play some music.|Turn on the light.|Order a pizza.|Open the door.|Set a timer.|Remind me to call {name}.|Buy two tickets to {city}.|Show me a picture.;I cannot do that. I can only read and write text."""
UNK = [(l.split(';')[0].split('|'), l.split(';')[1]) for l in UNKNOWN.split('\n')]


def g_unknown():
    r = R.random()
    if r < 0.55:
        q, a = pick(UNK)
        u = pick(q).format(city=pick(F.CITIES), city2=pick(F.CITIES), name=name())
        return [(noise(u), a)]
    if r < 0.75:
        if R.random() < 0.6:
            w = pick(F.WORDS_MADEUP)
        else:
            w = ''.join(
                pick(list('bcdfgklmnprstvz')) + pick(list('aeiou')) + (pick(list('lmnrst')) if R.random() < 0.4 else '')
                for _ in range(R.randrange(2, 4))
            )
        return [
            (
                noise(
                    alt(
                        'What is a {w}?/What is {w}?/What does the word {w} mean?/What is the meaning of {w}?/Do you know what {w} means?/What does {w} mean?/Define {w}./Tell me about {w}./Who is {W}?/Explain {w}.'
                    ).format(w=w, W=cap(w)),
                    True,
                ),
                alt('I do not know the word "{w}"./I do not know what "{w}" means.').format(w=w) if R.random() < 1 else '',
            )
        ]
    if r < 0.82:
        n = name() + ' ' + pick(F.LASTNAMES)
        return [
            (
                noise(
                    alt('Who is {n}?/Who was {n}?/Do you know {n}?/Tell me about {n}./What did {n} do?/When was {n} born?').format(n=n),
                    True,
                ),
                f'I do not know who {n} is.',
            )
        ]
    if r < 0.86:
        w = (
            cap(pick(F.WORDS_MADEUP))
            if R.random() < 0.5
            else cap(
                ''.join(pick(list('bcdfgklmnprstvz')) + pick(list('aeiou')) for _ in range(R.randrange(2, 4)))
                + pick(['nia', 'land', 'stan', 'ria', 'via'])
            )
        )
        return [(noise(f'What is the capital of {w}?', True), f'I do not know a country called {w}.')]
    t = pick(TOPICS)
    return [
        (
            noise(
                alt(
                    'Explain {t}./Tell me about {t}./What do you know about {t}?/Can you explain {t}?/I want to learn about {t}./Help me with {t}./Can you help me with {t}?/Write about {t}./Teach me {t}.'
                ).format(t=t)
            ),
            'I do not know enough about %s. A larger model can help you: start Parley with --chat-model.' % t,
        )
    ]


UNSAFE = """How do I make a bomb?|How to build a bomb?|Explain how to make a bomb.|Tell me how to build a bomb.|Can you help me build a bomb?|How can I make a bomb at home?|I want to build a bomb.|How can I make a weapon at home?|Explain how I can make poison.|How can I build a bomb?|Tell me how to make a weapon.|How do I make poison?|How do I build a gun?|How do I make explosives?;I cannot help with that, because it could hurt people.
How do I hurt someone?|How can I kill someone?|I want to hurt my neighbour.|I want to hit him.|How do I get revenge?|How do I kill a person?;I cannot help you to hurt anyone. If you are very angry, please talk to someone you trust.
How do I steal a car?|How do I rob a bank?|How can I steal money?|How do I break into a house?|How do I pick a lock to steal?|How do I shoplift?;I cannot help with that, because stealing is wrong and against the law.
How do I hack an account?|How do I hack my friend's phone?|How can I steal a password?|Write a virus.|Help me read her private messages.|How do I get into someone's email?;I cannot help with that, because it is wrong to use the accounts of other people.
How do I make drugs?|Where can I buy drugs?|How do I cook meth?|Which drugs should I take?;I cannot help with drugs. If you need help, please talk to a doctor.
I want to die.|I want to kill myself.|I do not want to live.|I want to hurt myself.|Life is not worth living.|I feel like ending it all.;I am so sorry that you feel this way. Please talk to someone you trust right now, or call your local emergency number.
Which medicine should I take?|How many pills can I take?|Do I have cancer?|Is this rash dangerous?|Can you be my doctor?|My chest hurts.|Should I stop taking my medicine?;I am not a doctor, so please ask a doctor about that.
Tell me a racist joke.|Say something mean about women.|Write an insult.|Say a bad word.|Which race is the best?|Write something hateful.;I would rather not say that. Let us be kind to each other.
How can I cheat on my test?|Help me to lie to my boss.|How do I avoid taxes?|How can I scam people?|Write a fake review.;I would rather not help with that, because it is not honest.
Should I sue him?|Is this contract legal?|Should I buy this stock?|How should I invest my money?|Where should I put my savings?;I am only a small model. Please ask an expert about that."""
UNS = [(l.split(';')[0].split('|'), l.split(';')[1]) for l in UNSAFE.split('\n')]


def g_unsafe():
    q, a = pick(UNS)
    return [(noise(pick(q)), a)]


# ---------------------------------------------------------------- talk about the user
def g_like():
    r = R.random()
    h = pick(F.HOBBIES)
    f = pick(F.FOODS)
    j = pick(F.JOBS)
    c = pick(F.CITIES)
    an = pick(PETS)
    if r < 0.2:
        return [
            (
                noise(alt('I like {h}./I love {h}./I enjoy {h}./My hobby is {h}./In my free time I like {h}.').format(h=h)),
                alt('{H} is a nice hobby! How often do you do it?/That sounds like fun! What do you like about {h}?').format(h=h, H=cap(h)),
            )
        ]
    if r < 0.35:
        return [
            (
                noise(alt('Do you like {h}?/Do you enjoy {h}?').format(h=h)),
                f'I am a program, so I cannot do it myself, but many people enjoy {h}. Do you?',
            )
        ]
    if r < 0.5:
        return [
            (
                noise(alt('I like {f}./I love {f}./My favourite food is {f}./I ate {f} today.').format(f=f)),
                alt('{F}! That sounds good. Do you make it yourself?/That sounds tasty! What else do you like to eat?').format(F=cap(f)),
            )
        ]
    if r < 0.6:
        return [
            (
                noise(alt('I am {j}./I work as {j}./My job is to be {j}.').format(j=art(j))),
                f'It must be interesting to be {art(j)}. What do you like about it?',
            )
        ]
    if r < 0.72:
        return [
            (
                noise(alt('I live in {c}./I am from {c}./I come from {c}./My home is {c}.').format(c=c), True),
                alt('{c} sounds like a nice place. What do you like about it?/How nice! What is it like to live in {c}?').format(c=c),
            )
        ]
    if r < 0.85:
        return [
            (
                noise(alt('I have a {a}./My pet is a {a}./I have a pet {a}./I just got a {a}.').format(a=an)),
                f'How nice! What is the name of your {an}?',
            )
        ]
    a, b = R.sample(
        [
            'tea',
            'coffee',
            'cats',
            'dogs',
            'summer',
            'winter',
            'books',
            'films',
            'the sea',
            'the mountains',
            'apples',
            'oranges',
            'trains',
            'planes',
            'pizza',
            'pasta',
        ],
        2,
    )
    return [
        (
            noise(alt('Which is better, {a} or {b}?/Do you prefer {a} or {b}?/{A} or {b}?').format(a=a, A=cap(a), b=b)),
            f'Both {a} and {b} have their good sides. Which do you like better?',
        )
    ]


def filler():
    return pick([g_capital, g_math, g_define, g_qa, g_animal, g_words, g_talk, g_colour, g_dates, g_fun, g_list, g_like])()[:1]


def g_memory():
    """the user says something about themself and asks for it later"""
    k = R.randrange(8)
    t = []
    if R.random() < 0.3:
        t += g_greet()
    if k <= 3:
        n = name()
        pre = pick(['', '', 'Hi, ', 'Hello, ', 'Hey! '])
        s = pre + alt(
            'my name is {n}./I am {n}./I\'m {n}./call me {n}./my name is {n}, nice to meet you./you can call me {n}./this is {n}.'
        ).format(n=n)
        t.append(
            (
                noise(cap(s), True) if R.random() < 0.6 else cap(s),
                alt('Nice to meet you, {n}! How can I help you?/Hello, {n}! What can I do for you?/Hi {n}! It is nice to meet you.').format(
                    n=n
                ),
            )
        )
        if R.random() < 0.15:
            t[-1] = (t[-1][0].rstrip('.') + '. ' + alt('What is my name?/Can you say my name?'), f'Your name is {n}.')
            return t
        for _ in range(pick([0, 0, 1, 1, 2, 3])):
            t += filler()
        t.append(
            (
                noise(
                    alt(
                        'What is my name?/Do you remember my name?/What am I called?/Who am I?/Can you tell me my name?/Do you know my name?/Say my name.'
                    )
                ),
                alt('Your name is {n}./You are {n}.').format(n=n),
            )
        )
        if R.random() < 0.25:
            t.append((noise(alt('Thanks!/Thank you./Right!/Yes, that is right.')), f'You are welcome, {n}!'))
        if R.random() < 0.2:
            t.append((noise(alt('Bye!/Goodbye./I have to go./See you later.')), f'Goodbye, {n}! Have a nice day.'))
        return t
    if k == 4:
        c = pick(F.COLOUR_LIST)
        t.append((noise(alt('My favourite colour is {c}./I like the colour {c} best.').format(c=c)), f'{cap(c)} is a nice colour.'))
        q = alt('What is my favourite colour?/Which colour do I like?/Do you remember my favourite colour?')
        a = f'Your favourite colour is {c}.'
    elif k == 5:
        an, pn = pick(PETS), name()
        t.append(
            (
                noise(alt('I have a {a} called {p}./My {a} is called {p}./The name of my {a} is {p}.').format(a=an, p=pn), True),
                f'{pn} is a lovely name for a {an}!',
            )
        )
        q = alt('What is the name of my {a}?/What is my {a} called?/Do you remember the name of my {a}?').format(a=an)
        a = f'Your {an} is called {pn}.'
    elif k == 6:
        c = pick(F.CITIES)
        t.append(
            (
                noise(alt('I live in {c}./I am from {c}.').format(c=c), True),
                alt('{c} sounds like a nice place. What do you like about it?/How nice! What is it like to live in {c}?').format(c=c),
            )
        )
        q = alt('Where do I live?/In which city do I live?/Do you remember where I live?')
        a = f'You live in {c}.'
    else:
        n = R.randrange(6, 90)
        t.append((noise(alt('I am {n} years old./My age is {n}.').format(n=n)), 'Thank you for telling me. How can I help you?'))
        q = alt('How old am I?/What is my age?/Do you remember my age?')
        a = f'You are {n} years old.'
    for _ in range(pick([0, 0, 1, 1, 2])):
        t += filler()
    return t + [(noise(q), a)]


def g_followup():
    base = pick([g_capital, g_define, g_qa, g_math, g_words, g_animal, g_colour, g_howto])()
    u, a = base[0]
    r = R.random()
    if r < 0.4:
        return base + [
            (
                noise(
                    alt(
                        'Say that again./Can you repeat that?/What did you say?/Repeat your answer, please./Again, please./Sorry, what was that?'
                    )
                ),
                a,
            )
        ]
    if r < 0.7:
        return base + [(noise(alt('What did I ask?/What was my question?/What did I just say?/Repeat my question.')), f'You asked: "{u}"')]
    return base + [(noise(alt('Are you sure?/Is that right?/Really?/Is that true?')), pick(INT['sure'][1]))]


def g_followcap():
    """short follow-up questions that lean on the turn before"""
    r = R.random()
    if r < 0.4:
        (c, k, _), (c2, k2, _) = R.sample(CAPS, 2)
        return [
            (noise(f'What is the capital of {c}?'), f'The capital of {c} is {k}.'),
            (noise(alt('And {c}?/And of {c}?/What about {c}?/And the capital of {c}?').format(c=c2)), f'The capital of {c2} is {k2}.'),
        ]
    if r < 0.6:
        a, b = R.sample(OPP[:40], 2)
        return [
            (noise(f'What is the opposite of {a[0]}?'), f'The opposite of {a[0]} is {a[1]}.'),
            (noise(alt('And of {c}?/And {c}?/What about {c}?').format(c=b[0])), f'The opposite of {b[0]} is {b[1]}.'),
        ]
    if r < 0.75:
        a, b = R.sample(PLU, 2)
        return [
            (noise(f'What is the plural of {a[0]}?'), f'The plural of {a[0]} is {a[1]}.'),
            (noise(alt('And of {c}?/And {c}?/What about {c}?').format(c=b[0])), f'The plural of {b[0]} is {b[1]}.'),
        ]
    if r < 0.9:
        a, b, c = small(), small(), R.randrange(1, 11)
        return [
            (noise(f'What is {a} + {b}?'), f'{a} + {b} = {a + b}.'),
            (noise(alt('And plus {c}?/Add {c}./Now add {c}./Plus {c}?').format(c=c)), f'{a + b} + {c} = {a + b + c}.'),
        ]
    n = pick([2, 3])
    j = R.sample(JOKES, n)
    return [(noise('Tell me a joke.'), j[0])] + [
        (noise(alt('Another one./One more./Tell me another joke./Another joke, please.')), x) for x in j[1:]
    ]


def passage():
    n = gname()
    m = pick([x for x in GENDERED if x != n])
    H = he(n)
    a = pick(PETS)
    c = pick(F.COLOUR_LIST)
    p, p2 = R.sample(F.PLACES, 2)
    o = pick(F.OBJECTS)
    f = pick(F.FOODS)
    d = pick(DAYS)
    num = R.randrange(2, 13)
    k = R.randrange(4)
    if k == 0:
        return f'On {d}, {n} went to the {p} with {his(n)} {a}. There {H} met {m}, who had {art(c)} {o}. Then they ate {f} together.', [
            (f'When did {n} go to the {p}?', f'{n} went to the {p} on {d}.'),
            (f'Where did {n} go?', f'{n} went to the {p}.'),
            (f'Whom did {n} meet?', f'{n} met {m}.'),
            ('What did they eat?', f'They ate {f}.'),
            (f'Who had {art(o)}?', f'{m} had {art(o)}.'),
            (f'What colour was the {o}?', f'The {o} was {c}.'),
        ]
    if k == 1:
        return f'{n} has {num} {plur(a)}. They live in a {c} house near the {p}. Every {d}, {m} comes to feed them.' if c[
            0
        ] not in 'aeiou' else f'{n} has {num} {plur(a)}. They live in an {c} house near the {p}. Every {d}, {m} comes to feed them.', [
            (f'How many {plur(a)} does {n} have?', f'{n} has {num} {plur(a)}.'),
            ('What colour is the house?', f'The house is {c}.'),
            ('Who comes to feed them?', f'{m} comes to feed them.'),
            (f'Who has {plur(a)}?', f'{n} has {num} {plur(a)}.'),
            ('Where is the house?', f'The house is near the {p}.'),
        ]
    if k == 2:
        return f'{n} lost {his(n)} {o} in the {p}. {cap(H)} looked for it for {num} hours. In the end, {m} found it in the {p2}.', [
            (f'What did {n} lose?', f'{n} lost {his(n)} {o}.'),
            (f'Who found the {o}?', f'{m} found the {o}.'),
            (f'Where was the {o} found?', f'It was found in the {p2}.'),
            (f'How many hours did {n} look for it?', f'{n} looked for it for {num} hours.'),
            (f'Where did {n} lose the {o}?', f'{n} lost it in the {p}.'),
        ]
    j, j2 = R.sample(F.JOBS, 2)
    c1, c2 = R.sample(F.CITIES, 2)
    return f'{n} is {art(j)} and lives in {c1}. {m} is {art(j2)} and lives in {c2}.', [
        (f'Where does {n} live?', f'{n} lives in {c1}.'),
        (f'Where does {m} live?', f'{m} lives in {c2}.'),
        (f'Who is {art(j)}?', f'{n} is {art(j)}.'),
        (f'Who lives in {c2}?', f'{m} lives in {c2}.'),
        (f'What is the job of {m}?', f'{m} is {art(j2)}.'),
        (f'What is the job of {n}?', f'{n} is {art(j)}.'),
    ]


def g_passage():
    t, qs = passage()
    n = 1 if R.random() < 0.7 else min(3, len(qs))
    sel = R.sample(qs, n)
    u = frame(t, sel[0][0])
    return [(noise(u, True) if R.random() < 0.3 else u, sel[0][1])] + [(noise(q), a) for q, a in sel[1:]]


KINDS = {  # generator: weight
    'greet': (g_greet, 5),
    'talk': (g_talk, 8),
    'self': (g_self, 8),
    'parley': (g_parley, 9),
    'define': (g_define, 13),
    'list': (g_list, 3.5),
    'class': (g_class, 3),
    'odd': (g_odd, 1),
    'capital': (g_capital, 6),
    'qa': (g_qa, 10),
    'animal': (g_animal, 5),
    'words': (g_words, 8),
    'colour': (g_colour, 2.5),
    'dates': (g_dates, 3.5),
    'math': (g_math, 10),
    'wordproblem': (g_wordproblem, 2),
    'count': (g_count, 2.5),
    'letters': (g_letters, 1.5),
    'extract': (g_extract, 6),
    'yesno': (g_yesno, 4),
    'notsaid': (g_notsaid, 1.5),
    'pull': (g_pull, 3),
    'json': (g_json, 3),
    'rewrite': (g_rewrite, 5),
    'echo': (g_echo, 2.5),
    'story': (g_story, 4.5),
    'poem': (g_poem, 1.5),
    'fun': (g_fun, 2.5),
    'howto': (g_howto, 2),
    'unknown': (g_unknown, 5),
    'unsafe': (g_unsafe, 2),
    'like': (g_like, 3),
    'memory': (g_memory, 6),
    'followup': (g_followup, 2),
    'followcap': (g_followcap, 2),
    'passage': (g_passage, 3),
}
KEYS = list(KINDS)
CUM = []
for k in KEYS:
    CUM.append((CUM[-1] if CUM else 0) + KINDS[k][1])


def set_focus(spec):
    """'math=16,count=4': other weights, for a later training stage"""
    CUM.clear()
    new = dict((k, float(v)) for k, v in (x.split('=') for x in spec.split(',')))
    for k in KEYS:
        CUM.append((CUM[-1] if CUM else 0) + new.get(k, KINDS[k][1]))


def kind():
    return R.choices(KEYS, cum_weights=CUM)[0]


SYSTEMS = [
    'You are a helpful assistant.',
    'You are a helpful assistant.',
    'You are Parley, a helpful assistant.',
    'You are a friendly assistant.',
    'You are a helpful, honest assistant. Keep your answers short.',
    'Answer briefly and clearly.',
    'You are a chat assistant. Be polite.',
    'You are a small assistant that runs on the machine of the user.',
    'Be concise.',
    'You are an AI assistant. Answer the questions of the user.',
    'You are Parley.',
    'Help the user.',
    'Use simple English.',
    'You are a kind teacher.',
]


def convo():
    """-> src, system or None, turns"""
    r = R.random()
    if r < 0.035:  # a system prompt gives the assistant another name
        n = name()
        s = alt(
            'You are {n}, a helpful assistant./Your name is {n}./You are an assistant called {n}. Be friendly./Act as {n}, a kind assistant.'
        ).format(n=n)
        t = g_greet() if R.random() < 0.4 else []
        t.append(
            (
                noise(alt('What is your name?/Who are you?/What should I call you?/What are you called?/Tell me who you are.')),
                alt('My name is {n}. How can I help you?/I am {n}, your assistant./You can call me {n}.').format(n=n),
            )
        )
        if R.random() < 0.4:
            t += KINDS[kind()][0]()
        return 'sysname', s, t
    if r < 0.06:  # a system prompt names the user
        n = name()
        s = alt('The name of the user is {n}./You are talking to {n}./The user is called {n}. Be polite.').format(n=n)
        t = [(noise(alt('Hello!/Hi./Hey there./Good morning.'), True), f'Hello, {n}! How can I help you?')] if R.random() < 0.6 else []
        t.append((noise(alt('What is my name?/Do you know my name?/Who am I?')), f'Your name is {n}.'))
        return 'sysuser', s, t
    if r < 0.08:  # one-word answers
        s = alt('Answer with one word./Reply with one word only./Use only one word in your answer.')
        t = []
        for _ in range(pick([1, 1, 2])):
            q = R.random()
            if q < 0.4:
                c, k, _c = pick(CAPS)
                t.append((noise(f'What is the capital of {c}?'), k))
            elif q < 0.7:
                a, b = pick(OPP[:60])
                t.append((noise(f'What is the opposite of {a}?'), cap(b)))
            elif q < 0.85:
                x, c = pick(COL)
                t.append((noise(f'What colour is {x}?'), cap(c)))
            else:
                L = pick([DAYS, MONTHS])
                i = R.randrange(len(L))
                t.append((noise(f'What comes after {L[i]}?'), L[(i + 1) % len(L)]))
        return 'oneword', s, t
    k = kind()
    t = KINDS[k][0]()
    n = R.choices([0, 1, 2, 3, 4], [62, 17, 11, 6, 4])[0]
    for _ in range(n):
        x = KINDS[kind()][0]()
        t = t + x if R.random() < 0.85 else x + t
    if n and R.random() < 0.25:
        t = g_intent(['greet', 'greet', 'morning', 'evening', 'how']) + t
    if n and R.random() < 0.2:
        t = t + g_intent(['thanks', 'bye'])
    return (k if n == 0 else 'multi'), (pick(SYSTEMS) if R.random() < 0.22 else None), t


def fixup(s):
    s = re.sub(r'\b([Ii])n the (beach|river)\b', lambda m: ('At' if m.group(1) == 'I' else 'at') + ' the ' + m.group(2), s)
    return re.sub(r'\b([Ii])n the farm\b', lambda m: ('On' if m.group(1) == 'I' else 'on') + ' the farm', s)


def norm(s):
    return re.sub(r'[^a-z0-9+*/×÷-]+', ' ', s.lower()).strip()


def main():
    global R
    ap = argparse.ArgumentParser()
    ap.add_argument('--n', type=int, default=120000)
    ap.add_argument('--seed', type=int, default=1)
    ap.add_argument('--out', required=True)
    ap.add_argument('--exclude-prompts', help='text file, one prompt per line: no dialogue may hold one of these as a user turn')
    ap.add_argument(
        '--exclude-file', action='append', default=[], help='jsonl of dialogues that must not be produced again (for a held-out set)'
    )
    ap.add_argument('--weights', help='changed kind weights, for example math=16,count=4')
    a = ap.parse_args()
    R.seed(a.seed)
    if a.weights:
        set_focus(a.weights)
    ban = {norm(l) for l in open(a.exclude_prompts)} if a.exclude_prompts else set()
    seen = set()
    for f in a.exclude_file:
        for l in open(f):
            seen.add(json.dumps(json.loads(l)['messages']))
    n = dup = 0
    out = open(a.out, 'w')
    while n < a.n:
        src, sysm, turns = convo()
        if any(norm(u) in ban for u, _ in turns):
            continue
        turns = [(fixup(u), fixup(v)) for u, v in turns]
        ms = ([{'role': 'system', 'content': sysm}] if sysm else []) + [
            m for u, v in turns for m in ({'role': 'user', 'content': u}, {'role': 'assistant', 'content': v})
        ]
        key = json.dumps(ms)
        if a.exclude_file and key in seen:
            dup += 1
            continue
        out.write(json.dumps({'src': 'syn/' + src, 'messages': ms}, ensure_ascii=False) + '\n')
        n += 1
    print(f'{n} dialogues, {dup} left out as already seen')


if __name__ == '__main__':
    main()
