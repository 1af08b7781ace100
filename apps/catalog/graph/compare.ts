import { setImmediate as turn } from 'node:timers/promises'
import type { Proof } from '../../shared/contracts/catalog/projections.ts'
import type { Store } from './store.ts'

/** How a read model differs from the truth: the first ids and each side's digest; equal content gives equal digests. */
export type Compared = Pick<Proof, 'compared' | 'differ' | 'skipped' | 'different' | 'digests'>

const SHOWN = 20
/** Nodes between two yields to the event loop, so that requests are still answered. */
const PART = 5000

/** A 64-bit digest over numbers and texts, as two words. */
const createDigest = () => {
  let a = 0x811c9dc5
  let b = 0x9e3779b9
  const add = (number: number): void => {
    a = Math.imul(a ^ number, 0x01000193)
    b = Math.imul(b ^ number, 0x85ebca6b)
    b ^= b >>> 15
  }
  const addText = (text: string): void => {
    add(text.length)
    for (let i = 0; i < text.length; i++) add(text.charCodeAt(i))
  }
  return { add, addText, words: (): [number, number] => [a >>> 0, b >>> 0] }
}

/** Digests all that a graph holds about a node, in any order: facts, edges, counts below it. Zero: no such node. */
const digestOf = (store: Store, rid: number): [number, number] => {
  if (!store.knows(rid)) return [0, 0]
  const node = createDigest()
  for (const text of [store.idOf(rid), store.nameOf(rid), store.lifecycleOf(rid), store.healthOf(rid)])
    node.addText(text)
  for (const fact of [store.typeOf(rid), store.parentOf(rid), store.versionOf(rid), Number(store.isOpen(rid))])
    node.add(fact)
  const [a, b] = node.words()
  const sum: [number, number] = [a, b]
  store.eachArc(rid, (type, out, peer, no) => {
    const arc = createDigest()
    for (const fact of [type, Number(out), peer, no, no / 0x1_0000_0000]) arc.add(fact)
    addTo(sum, arc.words())
  })
  store.eachCount(rid, (type, lifecycle, health, count) => {
    const below = createDigest()
    below.addText(`${lifecycle} ${health}`)
    for (const fact of [type, count]) below.add(fact)
    addTo(sum, below.words())
  })
  return sum
}

const addTo = (sum: [number, number], words: [number, number]): void => {
  sum[0] = (sum[0] + words[0]) >>> 0
  sum[1] = (sum[1] + words[1]) >>> 0
}

/** Compares two graphs node by node. Neither may receive events meanwhile. */
export const compareStores = async (live: Store, truth: Store): Promise<Compared> => {
  const sums: Record<'live' | 'truth', [number, number]> = { live: [0, 0], truth: [0, 0] }
  const found: Compared = { compared: 0, differ: 0, skipped: 0, different: [], digests: { live: '', truth: '' } }
  const size = Math.max(live.size(), truth.size())
  for (let rid = 1; rid < size; rid++) {
    if (rid % PART === 0) await turn()
    if (!live.knows(rid) && !truth.knows(rid)) continue
    const [is, wanted] = [digestOf(live, rid), digestOf(truth, rid)]
    found.compared += 1
    addTo(sums.live, is)
    addTo(sums.truth, wanted)
    if (is[0] === wanted[0] && is[1] === wanted[1]) continue
    found.differ += 1
    if (found.different.length < SHOWN) found.different.push((truth.knows(rid) ? truth : live).idOf(rid))
  }
  const hex = (words: [number, number]) => words.map((word) => word.toString(16).padStart(8, '0')).join('')
  found.digests = { live: hex(sums.live), truth: hex(sums.truth) }
  return found
}
