// Signing in: with a token that is typed, or with one that a link brings. Loaded
// when it is needed.
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
      hint="It begins with sbx_. The server prints one when it first starts; signalbox token create makes more.">
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

/** The page stays as it is underneath, and what it was doing goes on afterwards. */
export function SignInAgain({ reason }) {
  return html`<${Dialog} title="Sign in again" onClose=${() => {}}>
    <p>This token is good no more. What you were doing is kept, and goes on once you have signed in.</p>
    <${SignInForm} reason=${reason} isAgain=${true}/><//>`;
}

// A link's token signs in only after a confirmation: the person who made the
// link has the token too, and sees what its user is told.

function useOffer({ token, who }, done) {
  const [error, setError] = useState('');
  return { error, take: () => signIn(token, { who }).then(done, (e) => setError(e.message)) };
}

/** Whose token it is, and which server’s. */
function OfferedUser({ who }) {
  return html`<dl class="offered">
    <div><dt>User</dt><dd><${Text} text=${who.user} max=${128} line=${true}/> (role ${who.role})</dd></div>
    <div><dt>Server</dt><dd><${Text} text=${location.origin} line=${true}/></dd></div></dl>`;
}

export function SwitchUser({ offered, done }) {
  const { error, take } = useOffer(offered, done);
  return html`<${Dialog} title="Sign in with this link?" onClose=${done} actions=${html`
      <${Button} onClick=${done}>Stay <${Text} text=${me()?.user} max=${40} line=${true}/><//>
        <${Button} kind="main" onClick=${take}>Use the link’s token<//>`}>
    <p>You are signed in already. The link that was opened brings a token of its own. The person who made the link may
      see what you do with it.</p>
    <${OfferedUser} who=${offered.who}/>
    ${error && html`<${Problem} error=${error}/>`}<//>`;
}

/** The same where no user is signed in. */
export function SignInByLink({ offered, done }) {
  const { error, take } = useOffer(offered, done);
  return html`<main class="front"><div class="card"><h1><${Logo}/>Sign in with this link?</h1>
    <p>The link that was opened brings a token. Go on only if you know who made the link: they may see what you do with
      it.</p>
    <${OfferedUser} who=${offered.who}/>
    ${error && html`<${Problem} error=${error}/>`}
    <div class="actions"><${Button} kind="main" onClick=${take}>Sign in as <${Text} text=${offered.who.user} max=${40}
      line=${true}/><//><${Button} onClick=${done}>Cancel<//></div></div></main>`;
}
