import Type from 'typebox'
import { Closed, text } from './shapes.ts'

/** Lists of audit rows, the same in every app. */
const nullable = <T extends Type.TSchema>(schema: T) => Type.Union([schema, Type.Null()])
const Words = (description: string) => Type.Optional(Type.String({ maxLength: 512, description }))

export const AuditQuery = Closed({
  page_size: Type.Integer({ minimum: 1, maximum: 500, default: 50 }),
  page_token: Type.Optional(Type.String({ maxLength: 1024, description: 'From the previous reply.' })),
  actor: Words('Who, as spelled in the rows: `user:<uuid>`, `svc:<name>`, `system`.'),
  action: Words('The action, as spelled in the rows.'),
  object: Words('To what: `<kind>:<id>`, such as resource:eu1-web-01.'),
  from: Type.Optional(Type.String({ format: 'date-time', description: 'Not before this time.' })),
  to: Type.Optional(Type.String({ format: 'date-time', description: 'Before this time.' })),
})

const { action: _, ...shared } = AuditQuery.properties
/** Of the logs of sign-ins and of users. */
export const PersonAuditQuery = Closed({
  ...shared,
  user_id: Type.Optional(
    Type.String({
      format: 'uuid',
      description:
        'Only events about this user. In the log of changes also those of their grants, memberships and machines.',
    }),
  ),
  type: Type.Optional(Type.String({ maxLength: 64, description: 'An action, such as login or user.disabled.' })),
})

export const AuditView = Type.Object({
  at: text('2026-01-31T12:00:00.000Z'),
  actor: text('user:0195f0c2-7c1d-7e38-9d55-2b1c8a4f7e10'),
  on_behalf_of: nullable(Type.String()),
  roles: Type.Array(Type.String()),
  action: text('PATCH /v1/resources/:resource_id'),
  object: text('resource:eu1-web-01'),
  outcome: text('applied'),
  reason: nullable(Type.String()),
  request_id: nullable(Type.String()),
  command_id: nullable(Type.String()),
  before_hash: nullable(Type.String()),
  after_hash: nullable(Type.String()),
})
export const AuditList = Type.Object({
  items: Type.Array(AuditView),
  next_page_token: nullable(Type.String()),
  as_of: text('2026-01-31T12:00:00.000Z'),
})
