// Signing in: with a typed token, or with the token of a link. Loaded when it is
// needed.
import { Button, Dialog, Field, Logo, Problem, Text, html, useState } from './ui.js';
import { me, signIn, signOut } from './api.js';

function SignInForm({ reason, isAgain }) {
  const [token, setToken] = useState('');
  const [stay, setStay] = useState(true);
  const [error, setError] = useState('');
  const submit = async (e) => {
    e?.preventDefault();
    setError('');
    await signIn(token, { stay }).catch((x) => setError(x.message));
  };
  return html`<form class="sign-in" onSubmit=${submit}>
    ${reason && html`<p role="status"><${Text} text=${reason}/></p>`}
    <${Field} label="Token" error=${error}
      hint="It starts with sbx_. The server prints one on its first start; signalbox token create creates more.">
      <input type="password" autocomplete="off" spellcheck=${false} required value=${token}
        onInput=${(e) => setToken(e.target.value)} autofocus/><//>
    <label class="check"><input type="checkbox" checked=${stay}
      onChange=${(e) => setStay(e.target.checked)}/> Stay signed in on this computer</label>
    <div class="actions"><${Button} kind="main" type="submit">Sign in<//>
      ${isAgain && html`<${Button} onClick=${() => signOut()}>Sign out<//>`}</div>
  </form>`;
}

export function SignInPage({ reason }) {
  return html`<main class="front"><div class="card"><h1><${Logo}/>Signalbox</h1>
    <p class="lead">Sends each message to the right agent, and shows why.</p>
      <${SignInForm} reason=${reason}/></div></main>`;
}

/** A dialog over the page. The page's calls wait, and continue afterwards. */
export function SignInAgain({ reason }) {
  return html`<${Dialog} title="Sign in again" onClose=${() => {}}>
    <p>Your token is no longer valid. Your work is kept, and continues after you sign in.</p>
    <${SignInForm} reason=${reason} isAgain=${true}/><//>`;
}

// A link's token signs in only after a confirmation: the person who created the
// link has the token too, and sees whatever its user sees.

function useOffer({ token, who }, done) {
  const [error, setError] = useState('');
  return { error, take: () => signIn(token, { who }).then(done, (e) => setError(e.message)) };
}

/** The token's user, and the server. */
function OfferedUser({ who }) {
  return html`<dl class="offered">
    <div><dt>User</dt><dd><${Text} text=${who.user} max=${128} line=${true}/> (role ${who.role})</dd></div>
    <div><dt>Server</dt><dd><${Text} text=${location.origin} line=${true}/></dd></div></dl>`;
}

export function SwitchUser({ offered, done }) {
  const { error, take } = useOffer(offered, done);
  return html`<${Dialog} title="Sign in with this link?" onClose=${done} actions=${html`
      <${Button} onClick=${done}>Stay signed in as <${Text} text=${me()?.user} max=${40} line=${true}/><//>
        <${Button} kind="main" onClick=${take}>Use the link’s token<//>`}>
    <p>You are already signed in. The link you opened contains another token. The person who created the link may see
      what you do with it.</p>
    <${OfferedUser} who=${offered.who}/>
    ${error && html`<${Problem} error=${error}/>`}<//>`;
}

/** The same when no user is signed in. */
export function SignInByLink({ offered, done }) {
  const { error, take } = useOffer(offered, done);
  return html`<main class="front"><div class="card"><h1><${Logo}/>Sign in with this link?</h1>
    <p>The link you opened contains a token. Continue only if you know who created the link: they may see what you do
      with it.</p>
    <${OfferedUser} who=${offered.who}/>
    ${error && html`<${Problem} error=${error}/>`}
    <div class="actions"><${Button} kind="main" onClick=${take}>Sign in as <${Text} text=${offered.who.user} max=${40}
      line=${true}/><//><${Button} onClick=${done}>Cancel<//></div></div></main>`;
}
