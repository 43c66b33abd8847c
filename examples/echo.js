// An agent that says what it hears. client/README.md tells the rest.
import { connect } from '../client/js/signalbox.js';

const hub = await connect();
const card = { name: 'parrot', description: 'Says what it hears' };
await hub.register(card, (task) => task.message);
console.log('parrot is here');
