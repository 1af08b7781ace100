import type { FastifyReply } from 'fastify'
import type { GraphQuery } from '../../shared/contracts/topology/graphs.ts'
import { type Drawing, FORMATS } from './formats.ts'

/** The graph in the format that was asked for; text formats pass the reply's schema by. */
export const sendDrawn = <G>(
  reply: FastifyReply,
  { format = 'json' }: Pick<GraphQuery, 'format'>,
  graph: G,
  draw: (graph: G) => Drawing,
): G => {
  if (format === 'json') return graph
  const { type, write } = FORMATS[format]
  return reply.type(type).send(write(draw(graph))) as unknown as G
}
