(() => {
  'use strict';
  const box = document.querySelector('.search');
  const input = document.getElementById('search');
  const found = document.getElementById('found');
  const count = document.getElementById('count');
  const most = 40;
  let index;
  let chosen = -1;
  box.hidden = false;

  // Fields with their paths in lower case, made when the first search begins.
  const build = () => Array.from(document.querySelectorAll('.field, .version'), (element) => {
    const doc = element.querySelector(':scope > .doc');
    return { id: element.id, path: element.id.toLowerCase(), text: doc ? doc.textContent.toLowerCase() : '' };
  });

  // Lower is better: the name itself, the start of the name, any part of the path, the description.
  const rank = (entry, words) => {
    let total = 0;
    for (const word of words) {
      const name = entry.path.slice(entry.path.lastIndexOf('.') + 1);
      if (name === word) total += 0;
      else if (name.startsWith(word)) total += 1;
      else if (name.includes(word)) total += 2;
      else if (entry.path.includes(word)) total += 4;
      else if (entry.text.includes(word)) total += 8;
      else return -1;
    }
    return total + entry.path.length / 1000;
  };

  const choose = (position) => {
    const links = found.querySelectorAll('a');
    if (!links.length) return;
    chosen = (position + links.length) % links.length;
    links[chosen].focus();
  };

  const search = () => {
    index = index || build();
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    chosen = -1;
    found.replaceChildren();
    document.body.classList.toggle('searching', words.length > 0);
    if (!words.length) {
      count.textContent = '';
      return;
    }
    const ranked = index.map((entry) => ({ entry, rank: rank(entry, words) })).filter((hit) => hit.rank >= 0);
    ranked.sort((a, b) => a.rank - b.rank);
    count.textContent = ranked.length > most ? `${most} of ${ranked.length} results` : `${ranked.length} result${ranked.length === 1 ? '' : 's'}`;
    for (const { entry } of ranked.slice(0, most)) {
      const link = document.createElement('a');
      link.href = '#' + entry.id;
      const at = entry.id.lastIndexOf('.');
      const name = document.createElement('b');
      name.textContent = entry.id.slice(at + 1);
      const path = document.createElement('span');
      path.textContent = entry.id.slice(0, at);
      link.append(name, path);
      const item = document.createElement('li');
      item.append(link);
      found.append(item);
    }
  };

  // Browsers that do not open the parents of a target by themselves.
  const reveal = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let at = target.parentElement; at; at = at.parentElement) if (at.tagName === 'DETAILS') at.open = true;
    target.scrollIntoView();
  };

  input.addEventListener('input', search);
  box.addEventListener('keydown', (event) => {
    if (event.key === 'ArrowDown') choose(chosen + 1);
    else if (event.key === 'ArrowUp') choose(chosen - 1);
    else if (event.key === 'Enter' && event.target === input) found.querySelector('a')?.click();
    else if (event.key === 'Escape') {
      input.value = '';
      search();
      input.focus();
    } else return;
    event.preventDefault();
  });
  document.addEventListener('keydown', (event) => {
    if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || event.target.closest('input, textarea')) return;
    event.preventDefault();
    input.focus();
    input.select();
  });
  addEventListener('hashchange', reveal);
  if (location.hash) reveal();
})();
