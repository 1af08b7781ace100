import type { FastifyReply } from 'fastify'
import type { GraphQuery } from '../../shared/contracts/topology/graphs.ts'
import { type Drawing, FORMATS } from './formats.ts'

/** Sends the graph in the requested format; text formats bypass the reply's schema. */
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
