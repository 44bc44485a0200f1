/*
 * Licensed under the Apache License, Version 2.0 (the "License");
 * you may not use this file except in compliance with the License.
 * You may obtain a copy of the License at
 *
 *      http://www.apache.org/licenses/LICENSE-2.0
 *
 * Unless required by applicable law or agreed to in writing, software
 * distributed under the License is distributed on an "AS IS" BASIS,
 * WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
 * See the License for the specific language governing permissions and
 * limitations under the License.
 */

package org.nnhal;

import android.hardware.neuralnetworks.IDevice;

/**
 * What a service of nnhal says beyond IDevice: the binder extension of each IDevice on a socket.
 */
interface IService {
    /** Names of all devices that are offered, the first of which is the socket's root object. */
    String[] getDevices();

    /** The device of this name; a service-specific error 4 (INVALID_ARGUMENT) if there is none. */
    IDevice getDevice(in String name);

    /** Clients, models, memory, executions and how long they took, as one JSON object. */
    String getStatus();
}
