// Sends the code of a one-time link and goes on to the page. The code is in the fragment: no server and no log sees it before.
const code = location.hash.slice(1);
history.replaceState(null, "", "/enter");
const say = (text) => { document.getElementById("said").textContent = text; };
const headers = { "content-type": "application/json" };
fetch("/v1/session", { method: "POST", headers, body: JSON.stringify({ code }) })
  .then((answer) => {
    if (answer.ok) location.replace("/");
    else say("This link is used up or too old. Run `backout ui` for another one.");
  })
  .catch(() => say("The server does not answer. Run `backout ui` again."));
