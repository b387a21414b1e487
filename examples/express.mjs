// The listeners' apps in an Express app of one's own: `node express.mjs`, then ask http://localhost:8080/ai/v1
import express from 'express';
import { loadApps } from 'parley/server';

const apps = await loadApps({ chat: 'models/parley-chat' });
const app = express();
app.get('/', (_request, response) => response.send('Chat is at /ai/v1'));
app.use('/ai', apps.chat);
const server = app.listen(Number(process.env.PORT ?? 8080), '127.0.0.1', () => {
  console.log(`listening on http://localhost:${server.address().port}`);
});
process.once('SIGTERM', () => {
  server.close();
  void apps.close();
});
