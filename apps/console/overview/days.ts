import type { PlannedTick } from '../../shared/contracts/overview/overview.ts'

/** A time over which a freeze holds or a window is open, in milliseconds. */
export type Band = { id: string; kind: 'freeze' | 'window'; title: string; from: number; to: number }
type Calendar = {
  freezes: { freeze_id: string; title: string; from: string; to: string }[]
  windows: { window_id: string; opens_at: string | null; closes_at: string | null }[]
}

/** Freezes, and of each window its next opening. */
export const bandsOf = ({ freezes, windows }: Calendar): Band[] => [
  ...freezes.map(({ freeze_id, title, from, to }) => ({
    ...{ id: `freeze ${freeze_id}`, kind: 'freeze' as const, title, from: Date.parse(from), to: Date.parse(to) },
  })),
  ...windows.flatMap(({ window_id, opens_at, closes_at }) =>
    opens_at === null || closes_at === null
      ? []
      : [
          {
            ...{ id: `window ${window_id}`, kind: 'window' as const, title: window_id },
            ...{ from: Date.parse(opens_at), to: Date.parse(closes_at) },
          },
        ],
  ),
]

/** What is planned from one moment until before another. */
export const ticksOf = (planned: readonly PlannedTick[], from: number, to: number): PlannedTick[] =>
  planned.filter(({ at }) => Date.parse(at) >= from && Date.parse(at) < to)
