import Type from 'typebox'
import { Closed } from '../shapes.ts'

const Base64 = (description: string) =>
  Type.String({ pattern: '^[A-Za-z0-9+/]*={0,2}$', maxLength: 4_000_000, description })

/** A payload of the engine as its own tools send it to a codec endpoint: bytes in base64. */
const Payload = Closed({
  metadata: Type.Optional(
    Type.Record(Type.String({ minLength: 1, maxLength: 100 }), Base64('One value.'), { maxProperties: 20 }),
  ),
  data: Type.Optional(Base64('The bytes.')),
})

export const Payloads = Closed(
  { payloads: Type.Array(Payload, { maxItems: 1000 }) },
  { examples: [{ payloads: [{ metadata: { encoding: 'anNvbi9wbGFpbg==' }, data: 'eyJhIjoxfQ==' }] }] },
)
export type Payloads = Type.Static<typeof Payloads>
