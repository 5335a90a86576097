
// Follow the results: when their state has changed, load the page anew. What a reader has opened stays open, and while a
// search or an order is in use, a button loads it.
const opened = "opened " + location.pathname;
for (const id of JSON.parse(sessionStorage.getItem(opened) || "[]")) {
  const details = document.querySelectorAll("details")[id];
  if (details) details.open = true;
}

function reload() {
  const open = Array.from(document.querySelectorAll("details"), (details, at) => (details.open ? at : -1));
  sessionStorage.setItem(opened, JSON.stringify(open.filter((at) => at >= 0)));
  location.reload();
}

function inUse() {
  const searched = Array.from(document.querySelectorAll("input"), (input) => input.value).some((text) => text);
  return searched || document.querySelector("[aria-sort]") !== null;
}

function offer() {
  if (document.querySelector("button.newer")) return;
  const button = document.createElement("button");
  button.className = "newer";
  button.textContent = "There are newer results: load them";
  button.addEventListener("click", reload);
  document.querySelector("header").append(button);
}

async function follow() {
  if (document.visibilityState === "visible") {
    try {
      const answer = await fetch("state", { cache: "no-store" });
      if (answer.ok && (await answer.json()).state !== document.body.dataset.state) {
        if (inUse()) offer();
        else return reload();
      }
    } catch {
      // The server is away; the page stays as it is, and asks again.
    }
  }
  setTimeout(follow, 2000);
}
setTimeout(follow, 2000);
