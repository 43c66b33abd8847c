// Saves data as a file on the user's disk.

const KEPT_MS = 60000; // the browser may still ask where to put it

/** `what`: a Blob, or a text, which is saved as CSV. */
export function saveFile(name, what) {
  const url = URL.createObjectURL(what instanceof Blob ? what : new Blob([what], { type: 'text/csv' }));
  const link = Object.assign(document.createElement('a'), { href: url, download: name });
  document.body.append(link); // not every browser follows a link outside the document
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), KEPT_MS);
}
