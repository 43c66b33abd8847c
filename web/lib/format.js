// Numbers, times and texts in readable form. Pure: no page, no server.

const group = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });

export function num(value, digits) {
  if (value === null || value === undefined || Number.isNaN(value)) return '–';
  return digits === undefined ? group.format(value) : Number(value).toFixed(digits);
}

export function pct(share, digits = 0) {
  return share === null || share === undefined ? '–' : `${(share * 100).toFixed(digits)} %`;
}

export function count(n, one, many = `${one}s`) {
  return `${num(n)} ${n === 1 ? one : many}`;
}

const SPANS = [
  [86400e3, 'd', 3600e3, 'h'],
  [3600e3, 'h', 60e3, 'min'],
  [60e3, 'min', 1e3, 's'],
];

/** "840 ms", "4.2 s", "12 min", "3 h 5 min", "2 d 4 h" */
export function duration(ms) {
  if (ms === null || ms === undefined) return '–';
  const t = Math.max(0, ms);
  if (t < 1000) return `${Math.round(t)} ms`;
  if (t < 59950) return `${(t / 1000).toFixed(t < 9950 ? 1 : 0)} s`;
  for (const [size, unit, smaller, name] of SPANS) {
    if (t < size) continue;
    const whole = Math.floor(t / size);
    const rest = Math.floor((t - whole * size) / smaller);
    return rest && whole < 10 ? `${whole} ${unit} ${rest} ${name}` : `${whole} ${unit}`;
  }
  return `${Math.round(t / 1000)} s`;
}

/** "43 µs", "1.2 ms", from microseconds. */
export function microseconds(us) {
  if (us === null || us === undefined) return '–';
  if (us < 1000) return `${Math.round(us)} µs`;
  return us < 9950 ? `${(us / 1000).toFixed(1)} ms` : duration(us / 1000);
}

/** An age in one unit: "4 s", "12 min", "3 h", "2 d" */
export function age(ms) {
  const s = Math.max(1, Math.floor(ms / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  return s < 86400 ? `${Math.floor(s / 3600)} h` : `${Math.floor(s / 86400)} d`;
}

const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric' });

/** "14:02:11" for today, otherwise with the date. `now` is the server's time. */
export function when(ms, now = Date.now()) {
  if (!ms) return '–';
  const at = new Date(ms);
  const isToday = at.toDateString() === new Date(now).toDateString();
  return isToday ? clock.format(at) : `${day.format(at)}, ${clock.format(at)}`;
}

/** Micro-units as units, exactly: 1500000 -> "1.50". Takes a number, a BigInt or a string of digits. */
export function money(micros) {
  if (micros === null || micros === undefined) return '–';
  const n = BigInt(micros);
  const sign = n < 0n ? '−' : '';
  const whole = (n < 0n ? -n : n) / 1000000n;
  const part = String((n < 0n ? -n : n) % 1000000n).padStart(6, '0').replace(/0{1,4}$/, '');
  return `${sign}${whole.toLocaleString('en')}.${part}`;
}

/** "1.50" -> 1500000n; null if the text is not an amount. */
export function micros(text) {
  const m = /^\s*(\d{1,13})(?:\.(\d{0,6}))?\s*$/.exec(text);
  return m ? BigInt(m[1]) * 1000000n + BigInt((m[2] || '').padEnd(6, '0')) : null;
}

export function bytes(n) {
  if (n < 1024) return `${n} B`;
  return n < 1048576 ? `${(n / 1024).toFixed(1)} KB` : `${(n / 1048576).toFixed(1)} MB`;
}

// Characters that are invisible or change the direction of text. They are shown
// by name, so that a text cannot pass for another one. Joiners between emoji
// stay as they are.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]|(?<!\p{Extended_Pictographic}\ufe0f?|\p{Emoji_Modifier})\u200d/gu;

const NAMES = {
  0x00ad: 'soft hyphen', 0x061c: 'arabic mark', 0x200b: 'zero-width space', 0x200c: 'zero-width non-joiner',
  0x200d: 'zero-width joiner', 0x200e: 'left-to-right mark', 0x200f: 'right-to-left mark', 0x2028: 'line separator',
  0x2029: 'paragraph separator', 0x202a: 'left-to-right embedding', 0x202b: 'right-to-left embedding',
  0x202c: 'end of direction', 0x202d: 'left-to-right override', 0x202e: 'right-to-left override',
  0x2060: 'word joiner', 0x2066: 'left-to-right isolate', 0x2067: 'right-to-left isolate',
  0x2068: 'first strong isolate', 0x2069: 'end of isolate', 0xfeff: 'byte order mark',
};

/** A text in parts: strings, and {code, name} for each hidden character. */
export function visible(text) {
  const parts = [];
  let from = 0;
  for (const m of String(text).matchAll(HIDDEN)) {
    if (m.index > from) parts.push(text.slice(from, m.index));
    const code = m[0].codePointAt(0);
    parts.push({ code: `U+${code.toString(16).toUpperCase().padStart(4, '0')}`, name: NAMES[code] || 'invisible' });
    from = m.index + m[0].length;
  }
  if (from < text.length) parts.push(text.slice(from));
  return parts;
}

/** The length of a text in bytes of UTF-8. */
export const bytesOf = (text) => new TextEncoder().encode(text).length;

/** The same as one string, for titles, labels and options, which cannot contain elements: "safe⟨U+202E⟩gnp". */
export function marked(text) {
  return visible(String(text)).map((p) => (typeof p === 'string' ? p : `⟨${p.code}⟩`)).join('');
}

/** The first `most` UTF-16 units of a text, without splitting a character. */
export function cut(text, most) {
  if (text.length <= most) return text;
  const end = /[\ud800-\udbff]/.test(text[most - 1]) ? most - 1 : most;
  return text.slice(0, end);
}
