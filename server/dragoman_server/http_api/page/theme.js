// Light or dark: what the system says, until the reader says otherwise. The choice stays in this
// browser.
(() => {
  const CHOICE = "dragoman.theme";
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");

  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);

  function label() {
    const button = document.getElementById("theme");
    button.setAttribute("aria-label", isDark() ? "Use light colours" : "Use dark colours");
    button.dataset.shows = isDark() ? "dark" : "light";
  }

  try {
    const chosen = localStorage.getItem(CHOICE);
    if (chosen === "light" || chosen === "dark") {
      root.dataset.theme = chosen;
    }
  } catch {
    // the browser is told to keep nothing
  }
  document.addEventListener("DOMContentLoaded", () => {
    label();
    system.addEventListener("change", label);
    document.getElementById("theme").addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      label();
      try {
        localStorage.setItem(CHOICE, root.dataset.theme);
      } catch {
        // the choice lasts as long as the page is open
      }
    });
  });
})();
