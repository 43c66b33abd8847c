// An agent that echoes each message. client/README.md explains more.
import { connect } from '../client/js/signalbox.js';

const hub = await connect();
const card = { name: 'parrot', description: 'Says what it hears' };
await hub.register(card, (task) => task.message);
console.log('parrot is here');
