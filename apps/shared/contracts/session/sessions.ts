import Type from 'typebox'
import { text } from '../shapes.ts'

/** A session as its owner and administrators see it; it contains no token. */
export const SessionView = Type.Object({
  id: text('0195f0c2-7c1d-7e38-9d55-2b1c8a4f7e10'),
  created_at: text('2026-01-31T12:00:00.000Z'),
  last_used_at: text('2026-01-31T12:00:00.000Z'),
  expires_at: text('2026-03-02T12:00:00.000Z'),
  user_agent: Type.Union([Type.String(), Type.Null()]),
  ip_address: Type.Union([Type.String(), Type.Null()]),
  metadata: Type.Union([Type.Record(Type.String(), Type.Unknown()), Type.Null()]),
  mode: Type.Enum(['json', 'cookie', 'machine']),
  current: Type.Boolean(),
})
export const SessionList = Type.Object({
  items: Type.Array(SessionView),
  next_page_token: Type.Union([Type.String(), Type.Null()]),
  as_of: text('2026-01-31T12:00:00.000Z'),
})
