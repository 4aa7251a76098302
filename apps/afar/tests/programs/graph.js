// Builds a graph of objects and walks it; the argument is the number of nodes in thousands.
const count = Number(process.argv[2]) * 1000;
const nodes = [];
let state = 1;
const next = () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0);
for (let i = 0; i < count; i++) {
  const edges = i === 0 ? [] : [nodes[next() % i], nodes[next() % i]];
  nodes.push({ id: i, name: `node ${i}`, edges, data: [next(), next(), next()] });
}
let sum = 0;
for (let at = nodes[count - 1], steps = 0; steps < count / 10; steps++) {
  sum = (Math.imul(sum, 31) + at.id + at.data[1] + at.name.length) >>> 0;
  at = at.edges.length && next() % 16 ? at.edges[next() % 2] : nodes[next() % count];
}
console.log(nodes.length, sum);
