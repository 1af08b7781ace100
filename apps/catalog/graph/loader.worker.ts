import { parentPort, workerData } from 'node:worker_threads'
import { loadGraph } from './load.ts'

/** Loads the graph in its own thread and hands the arrays over; the server continues meanwhile. */
const arrays = await loadGraph((workerData as { url: string }).url)
const transfer = Object.values(arrays).flatMap((value) => (ArrayBuffer.isView(value) ? [value.buffer] : []))
parentPort?.postMessage(arrays, [...new Set(transfer)] as ArrayBuffer[])
