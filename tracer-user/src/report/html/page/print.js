// On paper no cause is folded away, and it is light.

const printed = { theme: null, opened: [] };
window.addEventListener("beforeprint", () => {
  printed.theme = document.documentElement.dataset.theme ?? null;
  document.documentElement.dataset.theme = "light";
  // The list of smaller causes. What is inside of a single cause would fill pages; whoever wants it opens it before.
  printed.opened = [...document.querySelectorAll("details.small:not([open])")];
  for (const details of printed.opened) details.open = true;
  draw();
});
window.addEventListener("afterprint", () => {
  if (printed.theme === null) delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = printed.theme;
  for (const details of printed.opened) details.open = false;
  draw();
});
