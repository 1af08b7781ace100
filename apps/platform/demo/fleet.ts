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
  const hosts = () => send<{ items: FleetHost[] }>('GET', '/hosts').then((reply) => reply.items)
  const putHost = (hostname: string, host: Partial<NewHost>) => send<FleetHost>('PUT', `/hosts/${hostname}`, host)
  return {
    putHost,
    /** Adds a host. A known one keeps its release: operations may have changed it since. */
    addHost: async (hostname: string, { release, ...place }: NewHost) => {
      const known = (await hosts()).some((host) => host.hostname === hostname)
      return putHost(hostname, known ? place : { ...place, release })
    },
    setFaults: (hostname: string, faults: Record<string, unknown>) =>
      send<FleetHost>('PUT', `/hosts/${hostname}/faults`, faults),
    hosts,
  }
}
type NewHost = { resource_id: string; region: string; release: string }
export type FleetHost = {
  hostname: string
  release: string
  traffic: string
  base_url: string
  resource_id: string | null
  faults: Record<string, unknown>
}
export type FleetClient = ReturnType<typeof createFleetClient>
