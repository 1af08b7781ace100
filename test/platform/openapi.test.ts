import Type from 'typebox'
import { describe, expect, it } from 'vitest'
import { nameSchemas } from '../../apps/platform/check/openapi/names.ts'
import { publicDocument } from '../../apps/platform/check/openapi/public.ts'
import type { Document } from '../../apps/shared/http/openapi.ts'

const documentOf = (replies: Record<string, object>): Document => ({
  openapi: '3.1.0',
  info: {},
  paths: Object.fromEntries(
    Object.entries(replies).map(([operationId, schema]) => [
      `/${operationId}`,
      { get: { operationId, responses: { 200: { description: '', content: { 'application/json': { schema } } } } } },
    ]),
  ),
})
const replyOf = ({ paths }: Document, id: string) => {
  const reply = paths[`/${id}`]?.get?.responses[200]
  return reply && 'content' in reply ? reply.content?.['application/json']?.schema : undefined
}

const Vote = Type.Object({ decision: Type.Enum(['approve', 'reject']), comment: Type.String({ maxLength: 2000 }) })
const same = (description: string) => JSON.parse(JSON.stringify({ ...Vote, description }))
const long = (member: string) =>
  JSON.parse(
    JSON.stringify(Type.Object({ [member]: Type.String({ description: 'x', pattern: `^${'a'.repeat(120)}$` }) })),
  )

describe('the schemas of a document', () => {
  it('are named if contracts export an equal one, whatever descriptions they add', () => {
    const given = documentOf({ getVote: same('Of a gate.'), listVotes: { type: 'array', items: same('One of many.') } })
    const { document, problems } = nameSchemas(given, [['Vote', Vote]])
    expect(problems).toEqual([])
    expect(replyOf(document, 'getVote')).toEqual({ $ref: '#/components/schemas/Vote', description: 'Of a gate.' })
    expect(replyOf(document, 'listVotes')).toMatchObject({ items: { $ref: '#/components/schemas/Vote' } })
    expect(Object.keys(document.components?.schemas ?? {})).toEqual(['Vote'])
  })

  it('have names if they are long and occur twice, and no name twice', () => {
    const twice = documentOf({ approveGate: long('a'), listGates: { type: 'array', items: long('a') } })
    expect(nameSchemas(twice, []).problems).toEqual([
      'This schema occurs in approveGate and listGates[]: export it from contracts.',
    ])
    expect(nameSchemas(documentOf({ approveGate: long('a'), listGates: long('b') }), []).problems).toEqual([])
    const other = Type.Object({ seq: Type.Integer(), a_member_with_a_long_name: Type.Integer() })
    const clash = documentOf({ approveGate: same(''), listGates: JSON.parse(JSON.stringify(other)) })
    expect(
      nameSchemas(clash, [
        ['Vote', Vote],
        ['Vote', other],
      ]).problems,
    ).toEqual(['Two schemas are exported as Vote: rename one in contracts.'])
  })
})

describe('the webhooks of a document', () => {
  it('have named schemas, as answers have', () => {
    const webhooks = {
      vote: {
        post: {
          operationId: 'receiveVote',
          requestBody: { content: { 'application/json': { schema: same('A vote.') } } },
          responses: { '2XX': { description: '' } },
        },
      },
    }
    const { document } = nameSchemas({ ...documentOf({}), webhooks }, [['Vote', Vote]])
    expect(document.webhooks?.vote?.post?.requestBody?.content['application/json']?.schema).toEqual({
      $ref: '#/components/schemas/Vote',
      description: 'A vote.',
    })
    expect(Object.keys(document.components?.schemas ?? {})).toEqual(['Vote'])
  })
})

describe('the public document', () => {
  it('is refused if a row of the gateway and the operations of the apps differ, or a name is given twice', () => {
    const operation = { operationId: 'getHealth', tags: ['health'], responses: {} }
    const paths = {
      '/health/live': { get: operation },
      '/health/ready': { get: operation },
      '/nowhere': { get: operation },
    }
    const told = () => publicDocument(new Map([['gateway', { openapi: '3.1.0', info: {}, paths }]]))
    expect(told).toThrow("catalog GET /api/v1/resources is in the gateway's table, but no app describes it")
    expect(told).toThrow("gateway GET /nowhere is not in the gateway's table")
    expect(told).toThrow('two operations have the id getHealth')
  })
})
