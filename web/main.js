import { h, render } from './vendor/preact.js';

render(h('h1', null, 'Signalbox'), document.getElementById('app'));
