import Type from 'typebox'
import { text } from '../text.ts'
import { Nullable, Time } from './common.ts'

/** Windows and freezes (operations.md 3.5). */
const Cel = text("target.scope.region_id == 'eu1'")
export const CalendarView = Type.Object({
  windows: Type.Array(
    Type.Object({
      window_id: text('eu1-night'),
      applies: Cel,
      timezone: text('Europe/Berlin'),
      days: Type.Array(Type.String()),
      from: text('22:00'),
      to: text('04:00'),
      open: Type.Boolean(),
      opens_at: Nullable(Time),
      closes_at: Nullable(Time),
    }),
  ),
  freezes: Type.Array(
    Type.Object({
      freeze_id: text('year-end'),
      title: text('No changes over the new year'),
      applies: Cel,
      from: Time,
      to: Time,
      approvers: Type.Array(Type.String()),
      in_force: Type.Boolean(),
    }),
  ),
  as_of: Time,
})
