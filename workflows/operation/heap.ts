/** A min-first queue of pairs, compared by the first number, then the second: its order never depends on arrival. */
export class Heap {
  #items: [number, number][] = []

  get size(): number {
    return this.#items.length
  }

  peek(): [number, number] | undefined {
    return this.#items[0]
  }

  push(first: number, second = 0): void {
    const items = this.#items
    const item: [number, number] = [first, second]
    let at = items.push(item) - 1
    while (at > 0) {
      const up = (at - 1) >> 1
      const parent = items[up]
      if (!parent || !less(item, parent)) break
      items[at] = parent
      at = up
    }
    items[at] = item
  }

  pop(): [number, number] | undefined {
    const items = this.#items
    const top = items[0]
    const item = items.pop()
    if (!top || !item || items.length === 0) return top
    let at = 0
    for (;;) {
      const left = 2 * at + 1
      const right = left + 1
      const leftItem = items[left]
      if (!leftItem) break
      const rightItem = items[right]
      const [down, child]: [number, [number, number]] =
        rightItem && less(rightItem, leftItem) ? [right, rightItem] : [left, leftItem]
      if (!less(child, item)) break
      items[at] = child
      at = down
    }
    items[at] = item
    return top
  }
}

const less = (a: [number, number], b: [number, number]): boolean => a[0] < b[0] || (a[0] === b[0] && a[1] < b[1])
