/** A client of the demo fleet's control listener: adds hosts and sets faults. */
export const createFleetClient = (fleet_url: string) => {
  const send = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const reply = await fetch(`${fleet_url}${path}`, {
      method,
      ...(body !== undefined && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(10_000),
    })
    if (!reply.ok) throw new Error(`the fleet answered ${reply.status} to ${method} ${path}: ${await reply.text()}`)
    return (reply.status === 204 ? undefined : await reply.json()) as T
  }
  return {
    putHost: (hostname: string, host: { resource_id?: string; region?: string; release?: string }) =>
      send<FleetHost>('PUT', `/hosts/${hostname}`, host),
    setFaults: (hostname: string, faults: Record<string, unknown>) =>
      send<FleetHost>('PUT', `/hosts/${hostname}/faults`, faults),
    hosts: () => send<{ items: FleetHost[] }>('GET', '/hosts').then((reply) => reply.items),
  }
}
export type FleetHost = {
  hostname: string
  release: string
  traffic: string
  base_url: string
  resource_id: string | null
  faults: Record<string, unknown>
}
export type FleetClient = ReturnType<typeof createFleetClient>
