import pg from 'pg'

/**
 * Reads the whole graph from one snapshot, in pieces: ranges of table pages, each as arrays in one binary COPY row. One
 * message per row costs a process about as much as the row itself, and sorting in the database costs four times as much
 * as reading. So it does neither (catalog.md 10).
 */
export type Piece =
  | { kind: 'resources'; columns: Buffer[] }
  | { kind: 'states'; columns: Buffer[] }
  | { kind: 'relationships'; columns: Buffer[] }

const TABLES = {
  resources: {
    table: 'resource',
    columns: ['rid', 'coalesce(parent_rid, 0)', 'type_id', 'is_open', 'resource_id', 'name'],
  },
  states: {
    table: 'resource_state',
    columns: ['rid', 'version', 'health_revision', 'lifecycle_status', 'health_status'],
  },
  relationships: { table: 'relationship', columns: ['src', 'dst', 'reltype_id', 'rel_no'] },
} as const

/** Table pages per piece: some megabytes. */
const PAGES = 1000

export type Head = {
  /** The last event that the snapshot is sure to contain; later ones may be in it too. */
  watermark: string
  max_rid: number
  /** Ids of relationship types in the order of their keys. */
  relationship_types: number[]
}

/** Reads the head, then all pieces, over two connections with the same snapshot. Pieces arrive in any order. */
export const readGraph = async (
  url: string,
  { onHead, onPiece }: { onHead: (head: Head) => void; onPiece: (piece: Piece) => void },
): Promise<void> => {
  const open = async () => {
    const client = new pg.Client({ connectionString: url, application_name: 'catalog-graph', query_timeout: 125_000 })
    client.on('error', () => {}) // The statement in progress fails.
    await client.connect()
    // For this transaction only: behind a pooler the connection is shared.
    await client.query(`begin isolation level repeatable read read only;
      set local statement_timeout = 120000; set local idle_in_transaction_session_timeout = 120000`)
    return client
  }
  const first = await open()
  const second = await open()
  try {
    const { rows } = await first.query<{ snapshot: string }>('select pg_export_snapshot() as snapshot')
    // The name comes from the server itself, and a snapshot cannot be a parameter.
    await second.query(`set transaction snapshot '${(rows[0]?.snapshot ?? '').replace(/[^0-9A-F-]/g, '')}'`)
    onHead(await readHead(first))
    const work = await pieces(first)
    const readAll = async (client: pg.Client) => {
      for (let next = work.shift(); next; next = work.shift()) {
        const { kind, from } = next
        const { table, columns } = TABLES[kind]
        const arrays = columns.map((column) => `array_send(array_agg(${column}))`).join(', ')
        const range = `ctid >= '(${from},0)'::tid and ctid < '(${from + PAGES},0)'::tid`
        const found = await copyRow(
          client,
          `copy (select ${arrays} from catalog.${table} where ${range}) to stdout (format binary)`,
        )
        if (found) onPiece({ kind, columns: found })
      }
    }
    await Promise.all([readAll(first), readAll(second)])
  } finally {
    await Promise.allSettled([first.end(), second.end()])
  }
}

const readHead = async (client: pg.Client): Promise<Head> => {
  const { rows } = await client.query<{ watermark: string; max_rid: string }>(
    `select (select coalesce(max(pub_seq), 0)::text from catalog.outbox) as watermark,
            (select coalesce(max(rid), 0)::text from catalog.resource) as max_rid`,
  )
  const types = await client.query<{ id: number }>('select id from catalog.relationship_type order by type_key')
  return {
    watermark: rows[0]?.watermark ?? '0',
    max_rid: Number(rows[0]?.max_rid ?? 0),
    relationship_types: types.rows.map(({ id }) => id),
  }
}

const pieces = async (client: pg.Client) => {
  const work: { kind: Piece['kind']; from: number }[] = []
  for (const kind of Object.keys(TABLES) as Piece['kind'][]) {
    const { rows } = await client.query<{ pages: number }>(
      `select (pg_relation_size($1::regclass) / current_setting('block_size')::int)::int as pages`,
      [`catalog.${TABLES[kind].table}`],
    )
    for (let from = 0; from < (rows[0]?.pages ?? 0); from += PAGES) work.push({ kind, from })
  }
  return work
}

/** The fields of the only row of a binary COPY; `undefined` if the range was empty. */
const copyRow = (client: pg.Client, text: string): Promise<Buffer[] | undefined> =>
  new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let failed: Error | undefined
    // The callbacks that pg's client makes on our query, message by message.
    const query = {
      submit: (connection: { query: (text: string) => void }) => connection.query(text),
      handleCopyData: ({ chunk }: { chunk: Buffer }) => void chunks.push(chunk),
      handleCommandComplete: () => {},
      handleError: (error: Error) => {
        failed = error
        reject(error)
      },
      handleReadyForQuery: () => {
        if (!failed) resolve(fieldsOf(Buffer.concat(chunks)))
      },
    }
    client.query(query as unknown as pg.Submittable)
  })

const HEADER_BYTES = 19

const fieldsOf = (copy: Buffer): Buffer[] | undefined => {
  let at = HEADER_BYTES
  const count = copy.readInt16BE(at)
  at += 2
  const fields: Buffer[] = []
  for (let i = 0; i < count; i++) {
    const length = copy.readInt32BE(at)
    at += 4
    if (length < 0) return undefined
    fields.push(copy.subarray(at, at + length))
    at += length
  }
  return fields
}

/** Calls `each` with the position and length of every element of an array in Postgres' binary format. */
export const eachElement = (array: Buffer, each: (at: number, length: number) => void): void => {
  const dimensions = array.readInt32BE(0)
  if (dimensions === 0) return
  const count = array.readInt32BE(12)
  for (let i = 0, at = 20; i < count; i++) {
    const length = array.readInt32BE(at)
    each(at + 4, length)
    at += 4 + Math.max(length, 0)
  }
}
