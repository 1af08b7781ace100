/**
 * The probability of a difference at least as large as that of the two samples if both came from one source:
 * Mann-Whitney's U, two-sided, by the normal approximation with correction for ties. For samples of 20 or more.
 */
export const mannWhitney = (left: readonly number[], right: readonly number[]): number => {
  const all = [...left.map((value) => ({ value, of: 0 })), ...right.map((value) => ({ value, of: 1 }))]
  all.sort((a, b) => a.value - b.value)
  let ranks = 0
  let ties = 0
  for (let from = 0; from < all.length; ) {
    let to = from
    while (to < all.length && all[to]?.value === all[from]?.value) to++
    const rank = (from + 1 + to) / 2
    ranks += rank * all.slice(from, to).filter(({ of }) => of === 0).length
    ties += (to - from) ** 3 - (to - from)
    from = to
  }
  const [a, b, n] = [left.length, right.length, all.length]
  const u = ranks - (a * (a + 1)) / 2
  const deviation = Math.sqrt(((a * b) / 12) * (n + 1 - ties / (n * (n - 1))))
  return 2 * upperTail(Math.abs(u - (a * b) / 2) / deviation)
}

/** The upper tail of the normal distribution (Abramowitz and Stegun 26.2.17; error below 1e-7). */
const upperTail = (z: number): number => {
  const t = 1 / (1 + 0.2316419 * z)
  const weights = [0.31938153, -0.356563782, 1.781477937, -1.821255978, 1.330274429]
  const sum = weights.reduce((total, weight, i) => total + weight * t ** (i + 1), 0)
  return (Math.exp(-(z * z) / 2) / Math.sqrt(2 * Math.PI)) * sum
}
