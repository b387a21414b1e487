// Through a bundler (here Vite, `npx vite build`), which builds the worker with the page. The model lies in the page's `public/` folder.
import { Parley } from 'parley';
import EngineWorker from 'parley/worker?worker';

const parley = await Parley.load({ chat: './parley-chat', worker: () => new EngineWorker() });
const answer = await parley.chat.completions.create({ messages: [{ role: 'user', content: 'What is the capital of France?' }] });
document.querySelector('#answer').textContent = answer.choices[0].message.content;
document.title = 'answered';
