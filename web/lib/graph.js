// The rules as a diagram: on the left the agents whose messages or health a rule
// depends on, in the middle the messages that wait, on the right the agents that
// would get them. The three layers are placed by hand: each rule is one box, as
// high as the lines that lead to it. A list below has the same content, for
// screen readers and to follow the links.
import { Age, Badge, Id, Name, State, Text, html } from './ui.js';
import { cut, duration, marked } from './format.js';

const LANE = 40; // from one line to the next
const APART = 14; // between boxes in a column
const LOW = 46; // height of a box with one line
const SIDE = 118, GAP = 232, MIDDLE = 216, OUT = 40;
const X = { left: 0, middle: SIDE + GAP, right: SIDE + GAP + MIDDLE + OUT };
const ANYONE = '\u0000anyone', TARGET = '\u0000the target'; // not a valid agent name
const IT = '\u0000it'; // not a valid rule name

/** Text for the SVG, cut to the width. Hidden characters are marked in the text. */
function fit(text, width, size) {
  const all = marked(cut(String(text), 200));
  let left = width / size;
  for (let at = 0; at < all.length; at++) {
    left -= /[A-Z_MWmw@%]/.test(all[at]) || all.charCodeAt(at) > 0x2000 ? 0.74 : 0.575;
    if (left < 0) return `${cut(all, at - 1)}…`;
  }
  return all;
}

/** The agents whose message, health or data an edge depends on. */
function sources(edge, task) {
  if (edge.from.length) return edge.from;
  if (edge.kind !== 'freshness') return [ANYONE];
  return [(edge.is_for_it && task?.to) || TARGET];
}

/** The box that waits: the task's message for all of its rules, otherwise one box per rule. */
function boxOf(edge, task) {
  if (edge.is_for_it && task) return { key: IT, isIt: true, title: task.type, below: `from ${task.from}`,
    to: [task.to] };
  return { key: edge.rule, title: edge.held_words, below: edge.rule, to: edge.to };
}

const found = (map, key, make) => map.get(key) || map.set(key, make()).get(key);

/** Places everything: each line starts in its own lane. */
function layout(edges, task) {
  const left = new Map(), boxes = new Map(), right = new Map(), lines = [];
  for (const edge of edges) {
    const about = boxOf(edge, task);
    const box = found(boxes, about.key, () => ({ ...about, lines: [] }));
    for (const name of sources(edge, task)) {
      const from = found(left, name.toLowerCase(), () => ({ name, lines: [] }));
      const line = { edge, from, box };
      from.lines.push(line);
      box.lines.push(line);
      lines.push(line);
    }
  }
  pile([...left.values()], (node) => {
    node.height = Math.max(LOW, node.lines.length * LANE);
    node.lines.forEach((line, i) => { line.y = node.y + node.height * ((i + 0.5) / node.lines.length); });
  });
  for (const box of boxes.values()) box.lines.sort((a, b) => a.y - b.y); // so that lines do not cross at the box
  spread([...boxes.values()], (box) => box.lines.map((l) => l.y), (box) => Math.max(LOW, box.lines.length * 16));
  for (const box of boxes.values())
    for (const name of box.to) found(right, name.toLowerCase(), () => ({ name, boxes: [] })).boxes.push(box);
  spread([...right.values()], (node) => node.boxes.map(centre), () => LOW);
  const all = [...left.values(), ...boxes.values(), ...right.values()];
  return { left: [...left.values()], boxes: [...boxes.values()], right: [...right.values()], lines,
    height: Math.max(0, ...all.map((n) => n.y + n.height)) };
}

const centre = (node) => node.y + node.height / 2;
const mean = (list) => list.reduce((sum, y) => sum + y, 0) / (list.length || 1);

function pile(nodes, place) {
  let y = 0;
  for (const node of nodes) {
    node.y = y;
    place(node);
    y += node.height + APART;
  }
}

/** Each node as close to the center of its incoming lines as the node above allows. */
function spread(nodes, leads, height) {
  let free = 0;
  for (const node of nodes.sort((a, b) => mean(leads(a)) - mean(leads(b)))) {
    node.height = height(node);
    node.y = Math.max(free, mean(leads(node)) - node.height / 2);
    free = node.y + node.height + APART;
  }
}

const stateOf = (edge) => (edge.is_blocking ? 'blocking' : edge.state || 'unasked');
const SIGNS = { blocking: '✕ ', met: '✓ ', unmet: '○ ', unasked: '' };

function Agent({ node, x, nodes }) {
  const isPlaceholder = node.name[0] === '\u0000';
  const known = nodes.find((n) => n.agent.toLowerCase() === node.name.toLowerCase());
  const y = node.height / 2;
  return html`<g class="graph-agent state-${known?.state || 'none'}" transform=${`translate(${x} ${node.y})`}>
    <rect width=${SIDE} height=${node.height} rx="8"/>
    <text x="11" y=${isPlaceholder ? y + 4 : y - 3} class="graph-name">
      ${isPlaceholder ? node.name.slice(1) : fit(node.name, SIDE - 16, 12.5)}</text>
    ${!isPlaceholder && html`<text x="11" y=${y + 13} class="graph-state">
      ${known?.state || 'not registered'}</text>`}
  </g>`;
}

function Line({ line }) {
  const { edge, box, y } = line;
  const state = stateOf(edge);
  const n = box.lines.length;
  const end = box.y + box.height * ((box.lines.indexOf(line) + 0.5) / n);
  const below = state === 'blocking' ? `blocking: ${edge.rule}` : box.isIt ? edge.rule : '';
  return html`<g class="graph-line is-${state}">
    <path d=${`M${SIDE} ${y} H${X.middle - 34} L${X.middle - 10} ${end} H${X.middle - 2}`}
      marker-end=${`url(#arrow-${state})`}/>
    <text x=${SIDE + 9} y=${y - 5}>${SIGNS[state]}${fit(edge.words, GAP - 36, 11.5)}</text>
    ${below && html`<text x=${SIDE + 9} y=${y + 13} class="graph-below">${fit(below, GAP - 40, 10.5)}</text>`}
  </g>`;
}

function Box({ box }) {
  const y = box.height / 2;
  return html`<g class="graph-box-node ${box.isIt ? 'is-it' : ''}">
    <g transform=${`translate(${X.middle} ${box.y})`}>
      <rect width=${MIDDLE} height=${box.height} rx="8"/>
      <text x="11" y=${y - 3} class="graph-name">${fit(box.title, MIDDLE - 12, 12)}</text>
      <text x="11" y=${y + 13} class="graph-state">${fit(box.below, MIDDLE - 14, 11)}</text>
    </g></g>`;
}

const Out = ({ box, node }) => html`<path class="graph-out" marker-end="url(#arrow-unasked)"
  d=${`M${X.middle + MIDDLE} ${centre(box)} L${X.right - 2} ${centre(node)}`}/>`;

const Arrow = ({ state }) => html`<marker id=${`arrow-${state}`} class="graph-arrow is-${state}" viewBox="0 0 8 8"
  refX="7" refY="4" markerUnits="userSpaceOnUse" markerWidth="9" markerHeight="9"
    orient="auto"><path d="M0 0L8 4L0 8z"/></marker>`;

function Picture({ graph, edges }) {
  const { task, nodes } = graph;
  const at = layout(edges, task);
  const width = (at.right.length ? X.right + SIDE : X.middle + MIDDLE) + 4;
  return html`<div class="graph-scroll" tabindex="0" role="group"
    aria-label="The rules as a diagram; the list below has the same content">
    <svg class="graph" viewBox=${`-2 -2 ${width} ${at.height + 4}`} style=${{ maxWidth: `${width}px` }}
      aria-hidden="true" focusable="false">
      <defs>${['blocking', 'met', 'unmet', 'unasked'].map((s) => html`<${Arrow} key=${s} state=${s}/>`)}</defs>
      ${at.right.map((node) => node.boxes.map((box) => html`<${Out} key=${`${node.name} ${box.key}`} box=${box}
        node=${node}/>`))}
      ${at.boxes.map((box) => html`<${Box} key=${box.key} box=${box}/>`)}
      ${at.lines.map((line, i) => html`<${Line} key=${i} line=${line}/>`)}
      ${at.left.map((node) => html`<${Agent} key=${node.name} node=${node} x=${X.left} nodes=${nodes}/>`)}
      ${at.right.map((node) => html`<${Agent} key=${node.name} node=${node} x=${X.right} nodes=${nodes}/>`)}
    </svg>
  </div>`;
}

// The same as a list.

const KINDS = { dependency: 'must arrive', safety_gate: 'must be true', freshness: 'must be true' };
const BADGES = { blocking: ['bad', 'blocking'], met: ['good', 'met'], unmet: ['warn', 'not yet'],
  unasked: ['calm', ''] };

function Met({ edge }) {
  const { event } = edge;
  if (!event) return null;
  return html`<span> · ${edge.state === 'met' ? '' : 'so far: '}
    <${Text} text=${`${event.from} ${event.type}`} max=${80} line=${true}/>${
    event.approved === true ? ', approved' : event.approved === false ? ', disapproved' : ''}, <${Age}
      ms=${event.at_ms}/>${
    event.task_id && html` · <${Id} id=${event.task_id} to=${`/tasks/${event.task_id}`}/>`}</span>`;
}

function Entry({ edge, nodes }) {
  const [tone, word] = BADGES[stateOf(edge)];
  const agents = nodes.filter((n) => edge.from.some((name) => name.toLowerCase() === n.agent.toLowerCase()));
  return html`<li class="graph-entry is-${stateOf(edge)}">
    <span>${word && html`<${Badge} tone=${tone}>${word}<//>`}</span>
    <span><strong><${Text} text=${edge.words} max=${200}/></strong> ${KINDS[edge.kind]} before <${Text}
      text=${edge.held_words} max=${200}/> can go${
      edge.within_ms && edge.kind === 'dependency' ? `, within ${duration(edge.within_ms)}` : ''}
        ${edge.has_condition ? ', if its condition holds' : ''}
      <span class="graph-why">rule <${Text} text=${edge.rule} max=${100}/><${Met} edge=${edge}/></span></span>
    <span class="graph-agents">
      ${agents.map((n) => html`<span key=${n.agent}><${Name}
        agent=${n.agent}/> ${n.state ? html`<${State} state=${n.state}/>`
          : html`<span class="faint">not registered</span>`}</span>`)}</span>
  </li>`;
}

const MOST = 40; // edges in the diagram; the list has all of them

/** The graph of GET /api/gate/graph. `only`: just the edges of the task's own rules. */
export function Graph({ graph, only }) {
  const edges = only && graph.task ? graph.edges.filter((e) => e.is_for_it) : graph.edges;
  const rest = !graph.is_whole
    && html`<p class="faint">Some rules are not shown: they are about agents that you cannot see, or there are too
      many.</p>`;
  if (!edges.length)
    return rest || html`<p class="faint">${only ? 'No rule in the file makes this message wait.'
      : 'No rule makes a message wait.'}</p>`;
  return html`<div class="graph-all">
    <${Picture} graph=${graph} edges=${edges.slice(0, MOST)}/>
    <ul class="graph-list" aria-label="Conditions">
      ${edges.map((e, i) => html`<${Entry} key=${i} edge=${e} nodes=${graph.nodes}/>`)}</ul>
    ${rest}
  </div>`;
}
