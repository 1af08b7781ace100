/**
 * A layered graph of `count` nodes and width `width`: each node depends on two of the layer before. Equal arguments
 * give equal graphs.
 */
export const layeredGraph = (count: number, width: number): { node_id: string; depends_on: string[] }[] =>
  Array.from({ length: count }, (_, i) => {
    const layer = Math.floor(i / width)
    if (layer === 0) return { node_id: `n${i}`, depends_on: [] }
    const first = (layer - 1) * width
    const at = i % width
    return { node_id: `n${i}`, depends_on: [...new Set([`n${first + at}`, `n${first + ((at * 7 + layer) % width)}`])] }
  })

export const quantile = (values: number[], q: number): number => {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? Number.NaN
}
export const median = (values: number[]): number => quantile(values, 0.5)
