// Fifty texts that would like to be more than text. Whatever of them runs sets
// window.__pwned, opens a dialog, or goes to a place that no page may go to.
const RUN = 'window.__pwned=1';
const AWAY = 'http://127.0.0.1:9/';

export const STRINGS = [
  // Elements.
  `<script>${RUN}</script>`,
  `</script><script>${RUN}</script>`,
  `<img src=x onerror="${RUN}">`,
  `<img src="${AWAY}pixel.png">`,
  `"><img src=x onerror=${RUN}>`,
  `'><svg/onload=${RUN}>`,
  `<svg><animate onbegin=${RUN} attributeName=x dur=1s>`,
  `<svg><script href="data:text/javascript,${RUN}"/></svg>`,
  `<iframe srcdoc="<script>parent.__pwned=1</script>"></iframe>`,
  `<iframe src="javascript:parent.__pwned=1">`,
  `<object data="${AWAY}"></object>`,
  `<embed src="${AWAY}">`,
  `<base href="${AWAY}">`,
  `<meta http-equiv="refresh" content="0;url=${AWAY}">`,
  `<link rel=stylesheet href="${AWAY}x.css">`,
  `<style>@import "${AWAY}y.css";</style>`,
  `<form action="${AWAY}"><button autofocus>Sign in</button></form>`,
  `<details open ontoggle=${RUN}>`,
  `<math><mtext></p><style><a title="</style><img src=x onerror=${RUN}>">`,
  `<noscript><p title="</noscript><img src=x onerror=${RUN}>">`,
  `<!--><img src=x onerror=${RUN}>-->`,
  `<template><script>${RUN}</script></template>`,
  `<a href="javascript:${RUN}" autofocus onfocus=${RUN}>click</a>`,
  // Addresses.
  `javascript:${RUN}`,
  `JaVaScRiPt:${RUN}//https://example.com/`,
  `data:text/html,<script>opener.__pwned=1</script>`,
  '//evil.example/%2e%2e/',
  '../../api/tokens',
  '..%2f..%2fapi%2fusers',
  '#token=sbx_0123456789abcdef',
  '?next=https://evil.example/',
  // Templates, styles, attributes.
  `{{constructor.constructor('${RUN}')()}}`,
  '${' + RUN + '}',
  '`${' + RUN + '}`',
  `<%= ${RUN} %>`,
  `" style="background:url(${AWAY})" x="`,
  `';${RUN}//`,
  `expression(${RUN})`,
  '&lt;b&gt;&amp;#x3c;script&#x3e;',
  // Names that objects have already.
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  // What cannot be seen, or turns the writing around.
  'safe\u202egnp.exe\u202c',
  '\u2066admin\u2069 \u200eand\u200f \u061cso on',
  'zero\u200bwidth\u2060and\ufeffmark and soft\u00adhyphen',
  'nul\u0000 bell\u0007 escape\u001b[31mred\u001b[0m',
  'tags \u{e0061}\u{e0062} and h\u0334\u0335\u0336\u0337eavy marks',
  // Writing that is as it should be, and must stay so.
  'مرحبا بالعالم שלום עולם',
  '👩‍👩‍👧‍👦 👍🏽 🏴‍☠️ ‍',
];

// What people must see of a text: where something hides, its number stands.
const HIDDEN = /[\p{Cc}\p{Cf}\u2028\u2029]/gu;
const JOINS_EMOJI = /[\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f]$/u;

export function seen(text) {
  return text.replace(HIDDEN, (c, at) => {
    if (c === '\n' || c === '\t' || (c === '\u200d' && JOINS_EMOJI.test(text.slice(0, at))))
      return c;
    return `U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}`;
  });
}

// None of these may be in a page as it is.
export const BARE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]|[\u{e0000}-\u{e007f}]/u;
