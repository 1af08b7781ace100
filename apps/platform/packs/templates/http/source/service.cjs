/** A service to try the pack on: node source/service.cjs. It keeps its release in memory. */
const { createServer } = require('node:http')

let release = '1.0'
createServer(async (request, reply) => {
  const previous = release
  if (request.method === 'PUT') release = (await new Response(request).json()).release
  reply.setHeader('content-type', 'application/json')
  reply.end(JSON.stringify({ release, previous, healthy: true }))
}).listen(Number(process.env.PORT ?? 8088), '127.0.0.1')
