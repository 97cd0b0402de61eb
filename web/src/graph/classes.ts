// Which family an operator belongs to, by its name in either framework; the families have colours.

export type Family = "matmul" | "norm" | "act" | "elem" | "reduce" | "shape" | "param" | "loss" | "comm";

const FAMILIES: [Family, RegExp][] = [
  ["comm", /all_?reduce|all_?gather|reduce_?scatter|broadcast_?(op|coll)|all_?to_?all|send|recv|barrier/],
  ["loss", /loss|nll|cross_?entropy|kl_div/],
  ["norm", /norm/],
  ["matmul", /matmul|addmm|\bmm|\bbmm|conv|linear|dense|einsum|attention|baddbmm|gemm|embedding|lstm|gru/],
  ["act", /relu|gelu|silu|tanh|sigmoid|softmax|elu|mish|swish|dropout|threshold/],
  ["reduce", /sum|mean|max|min|prod|argm|topk|any|all\b|amax|amin|var|std|cumsum/],
  [
    "shape",
    /view|reshape|transpose|permute|\bt\b|slice|select|squeeze|expand|cat|concat|stack|split|clone|copy|contiguous|flatten|gather|index|pad|chunk|detach|alias|tile/,
  ],
];

export function family(type: string): Family {
  const name = type
    .toLowerCase()
    .replace(/^aten\./, "")
    .replace(/backward\d*$/, "");
  if (name === "parameter" || name === "buffer") return "param";
  for (const [one, pattern] of FAMILIES) if (pattern.test(name)) return one;
  return "elem";
}
