document.getElementById("only").addEventListener("change", (event) => {
  document.body.dataset.only = event.target.value;
});
addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("details")) part.open = true;
});
