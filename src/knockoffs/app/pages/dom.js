// Elements and requests. Words that come from data are set as text; nothing here makes html of them.

export const byId = (name) => document.getElementById(name);

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") element.textContent = value;
    else if (name === "on") for (const [event, act] of Object.entries(value)) element.addEventListener(event, act);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

export function alarm(words) {
  const place = byId("alarm");
  place.textContent = words;
  place.hidden = words === "";
  if (words) place.scrollIntoView({ block: "nearest" });
}

// addresses are relative to that of the page, which holds the token
export async function ask(path, { method = "GET", body, json } = {}) {
  const headers = json === undefined ? {} : { "Content-Type": "application/json" };
  let answer;
  try {
    answer = await fetch(path, { method, headers, body: json === undefined ? body : JSON.stringify(json) });
  } catch {
    throw new Error("The app does not answer. Was it stopped?");
  }
  let content = null;
  try {
    content = await answer.json();
  } catch {
    content = null;
  }
  if (!answer.ok) throw new Error((content && content.error) || "The app answered " + answer.status + ".");
  return content;
}

export const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

export function clock(seconds) {
  const whole = Math.round(seconds), minutes = Math.floor(whole / 60);
  return minutes ? minutes + " min " + String(whole % 60).padStart(2, "0") + " s" : whole + " s";
}

export const many = (n, one) => n.toLocaleString("en") + " " + one + (n === 1 ? "" : "s");
