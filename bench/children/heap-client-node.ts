/** The heap before there is anything in a cache. */
import { report, usedHeapMB } from './child.ts'
import './client-node.ts'

report({ heapMB: usedHeapMB() })
